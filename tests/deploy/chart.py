"""The Helm chart: what it renders, and the values that it is tried with."""

import itertools
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
import yaml

from tests.running_service import ROOT

CHART = ROOT / "deploy" / "helm" / "attend"
HELM = shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not installed")

Values = dict[str, Any]
Object = dict[str, Any]

NETWORK = {"network": {"enabled": True, "egress": [{"to": [{"podSelector": {}}], "ports": [{"port": 5432}]}]}}
DATABASE = {"database": {"secret": "postgres"}}
SCALED = {"autoscaling": {"enabled": True, "prometheus": "http://prometheus:9090"}}
ARCHIVE = {"url": "https://models.example/2026-11.tar.gz", "sha256": "0" * 64}
GPU = {"provider": "cuda", "gpu": {"runtimeClass": "nvidia"}}

CHOICES: dict[str, dict[str, Values]] = {
    "provider": {"cpu": {}, "gpu": GPU, "mig": GPU | {"gpu": {"resource": "nvidia.com/mig-1g.10gb", "count": 2}}},
    "models": {
        "image": {},
        "claim": {"models": {"claim": "models", "folder": "2026-11"}},
        "archives": {"models": {"archives": [ARCHIVE, ARCHIVE]}},
    },
    "pods": {
        "one": {},
        "folder": {"data": {"claim": "data"}},
        "three": DATABASE | {"replicas": 3},
        "scaled": DATABASE | SCALED,
    },
    "network": {"open": {}, "closed": NETWORK},
    "kind": {"deployment": {}, "kserve": {"kind": "ServingRuntime"}, "ray": {"kind": "RayService"}},
    "more": {
        "none": {"keys": {"secret": ""}},
        "all": {
            "image": {"tag": "1", "pullSecrets": ["registry"]},
            "monitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "rates": {"secret": "redis"},
            "settings": {"rate_limit": "60/minute", "max_texts": 1048576, "access_log": True, "probe_interval_s": 7.5},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "nodeSelector": {"disk": "ssd"},
        },
    },
}  # fmt: skip
"""Each part of the chart, and what can be chosen for it."""


def fits(names: dict[str, str]) -> bool:
    """Whether the schema allows choices together."""
    if names["kind"] == "kserve":
        return names["models"] == "image" and names["pods"] == "one"
    return names["kind"] == "deployment" or (names["network"] == "closed" and names["pods"] != "folder")


@dataclass
class Case:
    """Choices, one of each part."""

    names: dict[str, str]

    def __str__(self) -> str:
        return "-".join(self.names.values())

    @property
    def values(self) -> Values:
        merged: Values = {}
        for part, name in self.names.items():
            for key, value in CHOICES[part][name].items():
                merged[key] = merged.get(key, {}) | value if isinstance(value, dict) else value
        return merged

    @cached_property
    def rendered(self) -> list[Object]:
        return rendered(self.values)


def cases(n: int) -> list[Case]:
    """Choices at random, the same ones each time."""
    every = [dict(zip(CHOICES, names, strict=True)) for names in itertools.product(*CHOICES.values())]
    chosen = random.Random(1).sample([names for names in every if fits(names)], n)
    return [Case(names) for names in chosen]


def template(values: Values) -> "subprocess.CompletedProcess[str]":
    assert HELM is not None
    command = [HELM, "template", "attend", str(CHART), "--namespace", "translation", "--values", "-"]
    return subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)


def rendered(values: Values) -> list[Object]:
    ended = template(values)
    assert ended.returncode == 0, ended.stderr
    return [document for document in yaml.safe_load_all(ended.stdout) if document]


def pods_of(documents: list[Object]) -> Iterator[Object]:
    """Each pod that the objects describe, as a Pod: KubeRay and KServe take its parts as they are."""
    for document in documents:
        spec = document["spec"]
        if document["kind"] == "Deployment":
            yield spec["template"]
        elif document["kind"] == "ServingRuntime":
            parts = ("containers", "volumes", "tolerations", "nodeSelector", "imagePullSecrets")
            yield {"metadata": {"labels": spec["labels"]}, "spec": {part: spec[part] for part in parts if part in spec}}
        elif document["kind"] == "RayService":
            cluster = spec["rayClusterConfig"]
            yield from (group["template"] for group in [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]])
