{{- /* What every pod has, but its containers: where it runs, as whom, and what it mounts. */ -}}
{{- define "attend.pod" -}}
enableServiceLinks: false
{{- /* Ray's autoscaler asks the cluster for pods; nothing else does. */}}
automountServiceAccountToken: {{ and (eq .Values.kind "RayService") .Values.autoscaling.enabled }}
# The pause before SIGTERM, then the drain, then some seconds more.
terminationGracePeriodSeconds: {{ add .Values.pause .Values.drain 10 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . }}}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if and (eq .Values.provider "cuda") .Values.gpu.runtimeClass }}
runtimeClassName: {{ .Values.gpu.runtimeClass }}
{{- end }}
{{- with include "attend.tolerations" . }}
tolerations: {{- . | trim | nindent 2 }}
{{- end }}
# Spread pods over nodes, so that a node that is lost takes few of them.
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "attend.labels" . | nindent 8 }}
{{- with .Values.models.archives }}
# Download the models and compare their sums.
initContainers:
  - name: models
    image: {{ include "attend.image" $ }}
    imagePullPolicy: {{ $.Values.image.pullPolicy }}
    command:
      - python
      - -c
      - | {{- $.Files.Get "files/fetch_models.py" | nindent 8 }}
      - /attend/models
      {{- range . }}
      - {{ .url }}
      - {{ .sha256 | quote }}
      {{- end }}
    resources: {{- toYaml $.Values.resources | nindent 6 }}
    securityContext: {{- include "attend.containerSecurity" $ | nindent 6 }}
    volumeMounts:
      - {name: models, mountPath: /attend/models}
{{- end }}
volumes: {{- include "attend.volumes" . | nindent 2 }}
{{- end }}

{{- /* The service: its settings, probes and end. */ -}}
{{- define "attend.container" -}}
image: {{ include "attend.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
ports: [{name: http, containerPort: 8000}]
env: {{- include "attend.env" . | nindent 2 }}
resources: {{- include "attend.resources" . | nindent 2 }}
startupProbe:
  httpGet: {path: /health/ready, port: http}
  periodSeconds: 2
  timeoutSeconds: 4
  failureThreshold: {{ div (add .Values.startup 1) 2 }}
readinessProbe:
  httpGet: {path: /health/ready, port: http}
  periodSeconds: 5
  timeoutSeconds: 4
# A busy server answers late; that is no reason to end it.
livenessProbe:
  httpGet: {path: /health/live, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
# Proxies go on sending for some seconds after the pod is told to end.
lifecycle: {preStop: {exec: {command: [sleep, {{ .Values.pause | quote }}]}}}
securityContext: {{- include "attend.containerSecurity" . | nindent 2 }}
volumeMounts: {{- include "attend.mounts" . | nindent 2 }}
{{- end }}
