"""Schemas of the resources that Kubernetes itself does not have, as far as the chart uses them; nothing else may occur.

Names and types are those of KEDA 2.20, the Prometheus operator 0.93, KubeRay 1.7 and KServe 0.20.
"""

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
POD_PART: Schema = {}
"""Part of a pod, which is checked as a Pod."""


def fields(optional: Schema | None = None, /, **required: Schema) -> Schema:
    properties = required | (optional or {})
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def several(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
PROMETHEUS = fields(serverAddress=TEXT, query=TEXT, threshold=TEXT, ignoreNullValues={"enum": ["true", "false"]})
POD_TEMPLATE = fields(metadata=fields(labels=TEXTS), spec=POD_PART)
WORKERS = fields(
    groupName=TEXT, replicas=COUNT, minReplicas=COUNT, maxReplicas=COUNT, rayStartParams=TEXTS, template=POD_TEMPLATE
)

SPECS: dict[tuple[str, str], Schema] = {
    ("keda.sh/v1alpha1", "ScaledObject"): fields(
        scaleTargetRef=fields(name=TEXT),
        minReplicaCount=COUNT,
        maxReplicaCount=COUNT,
        fallback=fields(failureThreshold=COUNT, replicas=COUNT, behavior={"const": "currentReplicasIfHigher"}),
        advanced=fields(
            horizontalPodAutoscalerConfig=fields(behavior=fields(scaleDown=fields(stabilizationWindowSeconds=COUNT)))
        ),
        triggers=several(fields(type=TEXT, metricType={"const": "AverageValue"}, metadata=PROMETHEUS)),
    ),
    ("monitoring.coreos.com/v1", "PodMonitor"): fields(
        jobLabel=TEXT,
        selector=fields(matchLabels=TEXTS),
        podMetricsEndpoints=several(fields(port=TEXT, path=TEXT, interval=TEXT)),
    ),
    ("ray.io/v1", "RayService"): fields(
        serveConfigV2=TEXT,
        rayClusterConfig=fields(
            rayVersion=TEXT,
            enableInTreeAutoscaling={"type": "boolean"},
            headGroupSpec=fields(rayStartParams=TEXTS, template=POD_TEMPLATE),
            workerGroupSpecs=several(WORKERS),
        ),
    ),
    ("serving.kserve.io/v1alpha1", "ServingRuntime"): fields(
        dict.fromkeys(["tolerations", "nodeSelector", "imagePullSecrets"], POD_PART),
        supportedModelFormats=several(fields(name=TEXT, version=TEXT, autoSelect={"type": "boolean"})),
        labels=TEXTS,
        protocolVersions=several({"enum": ["v1", "v2"]}),
        containers=POD_PART,
        volumes=POD_PART,
    ),
}  # fmt: skip
