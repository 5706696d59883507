{{- define "attend.labels" -}}
app.kubernetes.io/name: attend
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "attend.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "attend.ownModels" -}}
{{- if or .Values.models.claim .Values.models.archives }}true{{ end }}
{{- end }}

{{- /* The settings of the service. Numbers as JSON writes them: Helm would write 1048576 as 1.048576e+06. */ -}}
{{- define "attend.env" -}}
- {name: ATTEND_PROVIDER, value: {{ .Values.provider }}}
- {name: ATTEND_DATA, value: /var/lib/attend}
- {name: ATTEND_DRAIN_TIMEOUT_S, value: {{ .Values.drain | quote }}}
{{- if and (eq .Values.provider "cuda") (gt (int .Values.gpu.count) 1) }}
- {name: ATTEND_DEVICES, value: all}
{{- end }}
{{- if eq .Values.kind "ServingRuntime" }}
- {name: ATTEND_ARTIFACTS, value: /mnt/models}
{{- else if include "attend.ownModels" . }}
- {name: ATTEND_ARTIFACTS, value: /attend/models}
{{- end }}
{{- if .Values.keys.secret }}
- {name: ATTEND_API_KEYS_FILE, value: /run/secrets/attend/keys}
{{- end }}
{{- with .Values.database.secret }}
- {name: ATTEND_SECRETS, value: /run/secrets/attend}
{{- end }}
{{- with .Values.rates.secret }}
- name: ATTEND_RATE_STORE
  valueFrom: {secretKeyRef: {name: {{ . }}, key: {{ $.Values.rates.entry }}}}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: ATTEND_{{ upper $name }}, value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}}
{{- end }}
{{- end }}

{{- define "attend.resources" -}}
{{- $resources := deepCopy .Values.resources }}
{{- if eq .Values.provider "cuda" }}
{{- $limits := get $resources "limits" | default dict }}
{{- $_ := set $limits .Values.gpu.resource .Values.gpu.count }}
{{- $_ := set $resources "limits" $limits }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{- define "attend.tolerations" -}}
{{- if eq .Values.provider "cuda" }}
- {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
{{- end }}
{{- with .Values.tolerations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "attend.mounts" -}}
- {name: tmp, mountPath: /tmp}
- {name: data, mountPath: /var/lib/attend}
{{- if or .Values.keys.secret .Values.database.secret }}
- {name: secrets, mountPath: /run/secrets/attend, readOnly: true}
{{- end }}
{{- if include "attend.ownModels" . }}
- {name: models, mountPath: /attend/models, readOnly: true {{- with .Values.models.folder }}, subPath: {{ . }}{{ end }}}
{{- end }}
{{- end }}

{{- define "attend.volumes" -}}
- name: tmp
  emptyDir: {{ if eq .Values.kind "RayService" }}{}{{ else }}{medium: Memory, sizeLimit: 64Mi}{{ end }}
- name: data
  {{- if .Values.data.claim }}
  persistentVolumeClaim: {claimName: {{ .Values.data.claim }}}
  {{- else }}
  emptyDir: {sizeLimit: {{ .Values.data.size }}}
  {{- end }}
{{- if or .Values.keys.secret .Values.database.secret }}
- name: secrets
  projected:
    defaultMode: 0444
    sources:
      {{- with .Values.keys.secret }}
      - secret: {name: {{ . }}, items: [{key: keys, path: keys}]}
      {{- end }}
      {{- with .Values.database.secret }}
      - secret: {name: {{ . }}, items: [{key: {{ $.Values.database.entry }}, path: attend_database}]}
      {{- end }}
{{- end }}
{{- if .Values.models.claim }}
- name: models
  persistentVolumeClaim: {claimName: {{ .Values.models.claim }}, readOnly: true}
{{- else if .Values.models.archives }}
- name: models
  emptyDir: {sizeLimit: {{ .Values.models.size }}}
{{- end }}
{{- end }}

{{- define "attend.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: {{ ne .Values.kind "RayService" }}
capabilities: {drop: [ALL]}
{{- end }}
