"""All settings, read once from the environment: ATTEND_HOST, ATTEND_PORT, and so on."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import limits
from pydantic import ByteSize, Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service.base.artifact import MAX_BEAM_SIZE
from service.base.log import Form, Log

PREFIX = "ATTEND_"

ADDRESS_OF_A_SERVICE = re.compile(r"(tcp|udp|sctp)://")
"""The value that Kubernetes gives ATTEND_PORT where a Service is called attend."""

ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")
"""An origin as browsers send it: without a path, and without a slash at its end."""

ROOT_PATH = re.compile(r"(/[\w.~-]+)*/?", re.ASCII)

Seconds = Annotated[float, Field(le=86_400, allow_inf_nan=False)]


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, hide_input_in_errors=True)

    host: str = Field(
        default="127.0.0.1",
        description="Address to listen on; * for every one of IPv4 and IPv6.",
    )
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on.")
    artifacts: Path = Field(default=Path("artifacts"), description="Directory of artifact directories.")
    models: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Names of the models to serve, comma-separated; by default every artifact. Where several could "
        "answer a request, the first one named does; by default that of the fewest languages translates, and other "
        "requests are refused.",
    )
    provider: Literal["auto", "cpu", "cuda"] = Field(
        default="auto",
        description="auto: CUDA where it really works, the CPU otherwise. cuda: refuse to start without.",
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        description="CPU threads for models, which the loops share; by default one for each loop. A slow model, which "
        "has a loop of its own, uses all of them, by default the physical cores of this process.",
    )
    loops: int | None = Field(
        default=None,
        ge=0,
        description="Processes that run the models; by default one for each thread or core on the CPU, four at most, "
        "one on CUDA. 0: models run in the server's own process.",
    )
    model_memory: ByteSize | None = Field(
        default=None,
        gt=0,
        description="Memory for models, such as 2GB, on the CPU. Models are then loaded when first asked for, each by "
        "one loop, and those not used for the longest time are unloaded. By default there is no limit, and every model "
        "is loaded at start.",
    )
    servers: int | None = Field(
        default=None,
        ge=1,
        description="Processes that speak HTTP, on one port; by default one, and up to four where there are cores that "
        "the loops leave free.",
    )
    data: Path | None = Field(
        default=None,
        description="Folder of what is kept for clients: glossaries and documents. By default the folder data in the "
        "working directory; where that cannot be written, one that goes with the service.",
    )
    run_directory: Path | None = Field(
        default=None,
        description="Where the service makes a folder for the sockets between its processes, and for the metrics of "
        "several servers; by default where the system has temporary files.",
    )
    device: int | None = Field(
        default=None,
        ge=0,
        description="Which GPU runs the models, on a machine with several: its place among those that "
        "CUDA_VISIBLE_DEVICES lists, or among all. By default the first.",
    )
    cuda_graphs: bool = Field(
        default=True,
        description="On CUDA, launch a decoder step, or a pass of a translator's encoder, as one CUDA graph, captured "
        "when the first of its size runs. Not where models run in the server's own process.",
    )
    slots: int | None = Field(
        default=None,
        ge=MAX_BEAM_SIZE,
        description="Hypotheses of a model that one loop runs at once (decoder rows), for greedy search and for wider "
        "beams each; by default 96 on the CPU, 256 on CUDA. "
        "The same limit applies to texts being classified, embedded or aligned; by default 256.",
    )
    max_waiting: int = Field(
        default=1024,
        ge=1,
        description="A request gets 503 if so many sequences would be before its own in a queue.",
    )
    prefill_padded_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens, padding included, that one forward pass reads at most; "
        "by default 8192, and 512 on the CPU for all but classification, or fewer where a translation model is slow: "
        "running requests must not stall.",
    )
    max_body_bytes: int = Field(default=1_048_576, ge=1, description="Largest request body; a larger one gets 413.")
    max_document_bytes: int = Field(
        default=10_485_760,
        ge=1,
        description="The same of a request with a document, which may be four times as large when it is unpacked.",
    )
    body_timeout_s: Seconds = Field(
        default=30.0, gt=0, description="Seconds in which a body must have come; a slower one gets 408."
    )
    head_timeout_s: Seconds = Field(
        default=30.0,
        gt=0,
        description="Seconds for the first byte of a connection, and for the head of each request; then the connection "
        "is closed, with 408 where part of a head has come.",
    )
    send_timeout_s: Seconds = Field(
        default=30.0, gt=0, description="Seconds after which a client that takes nothing of its answer is left."
    )
    max_connections: int | None = Field(
        default=None,
        ge=1,
        description="Most connections of one server. For one more, that which has been idle longest is closed; where "
        "none is idle, the new one gets 503. By default 10000, or what the limit of descriptors leaves after 64.",
    )
    max_text_characters: int = Field(default=50_000, ge=1, description="Longest text; a longer one gets 413.")
    max_texts: int = Field(default=256, ge=1, description="Most texts in one request; more get 422.")
    max_sequences: int = Field(
        default=10_000,
        ge=1,
        description="Most sentences, or windows of a long text, in one request; more get 422.",
    )
    max_attention_weights: int = Field(
        default=1_000_000,
        ge=1,
        description="Most numbers in the attention matrices of one answer, about 10 bytes each as JSON; more get 422.",
    )
    max_shown_tokens: int = Field(
        default=50_000,
        ge=1,
        description="Most tokens that one answer aligns, about 100 bytes each; more get 422.",
    )
    max_evidence_tokens: int = Field(
        default=131_072,
        ge=1,
        description="Most tokens that are read for the evidence of one answer: a text is read once more without each "
        "of its tokens, so that 256 tokens in one window are 65,000, some seconds of work; more get 422.",
    )
    max_embedding_numbers: int = Field(
        default=1_000_000,
        ge=1,
        description="Most numbers in the embeddings of one answer, about 10 bytes each as JSON; more get 422.",
    )
    default_timeout_s: Seconds = Field(
        default=30.0, gt=0, description="Seconds until a request without timeout_s gets 504."
    )
    max_timeout_s: Seconds = Field(default=300.0, gt=0, description="Largest timeout_s that a request may ask for.")
    document_timeout_s: Seconds = Field(
        default=3600.0, gt=0, description="Seconds until a document is given up, waiting included."
    )
    documents_kept_s: Seconds = Field(
        default=3600.0,
        gt=0,
        description="Seconds after which a document is forgotten that is translated, or cannot be.",
    )
    max_documents: int = Field(
        default=100,
        ge=1,
        description="Most documents that wait, are translated or are kept. One more takes the place of one that was "
        "fetched already, or gets 503.",
    )
    drain_timeout_s: Seconds = Field(
        default=30.0, ge=0, description="Seconds after SIGTERM in which accepted requests are still answered."
    )
    drain_delay_s: Seconds = Field(
        default=0.0,
        ge=0,
        description="Least seconds after SIGTERM for which the service goes on listening, not ready and answering 503, "
        "so that load balancers notice before it has gone.",
    )
    probe_interval_s: Seconds = Field(
        default=15.0,
        ge=0.1,  # the probes of a few models take some hundredths of a second each
        description="An idle model proves itself by a forward pass this often, and its files are looked at; after "
        "three times as long without a pass it is not ready.",
    )
    api_keys: Annotated[frozenset[SecretStr], NoDecode] = Field(
        default=frozenset(), description="Comma-separated keys; if any, requests need Authorization: Bearer <key>."
    )
    api_keys_file: Path | None = Field(
        default=None, description="File of keys, one a line, which count together with those of ATTEND_API_KEYS."
    )
    rate_limit: str | None = Field(
        default=None,
        description="Requests per client, such as 60/minute; more get 429. The window slides, and is counted to about "
        "one request. None by default.",
    )
    trusted_proxies: str | None = Field(
        default=None,
        description="Addresses or networks, comma-separated, of proxies whose X-Forwarded-For tells who the client is; "
        "*: any. None by default: the client is who connects.",
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins, comma-separated, such as https://example.org, whose pages may read answers in a browser "
        "(CORS); *: all. None by default.",
    )
    open_inference: bool = Field(
        default=True,
        description="Whether clients of the Open Inference Protocol, such as Triton's, may ask, below /v2.",
    )
    libretranslate: bool = Field(
        default=True, description="Whether clients of LibreTranslate may ask, below /libretranslate."
    )
    deepl: bool = Field(default=True, description="Whether clients of DeepL may ask, below /v2 and /v3.")
    hugging_face: bool = Field(
        default=True, description="Whether clients of Hugging Face's inference endpoints may ask, below /models/NAME."
    )
    openai: bool = Field(default=True, description="Whether clients of OpenAI may ask, below /v1.")
    root_path: str = Field(
        default="",
        description="Path under which a proxy serves the service, such as /attend, whether the proxy takes it off or "
        "not. By default the service is at the root.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severity that is logged."
    )
    log_format: Form = Field(
        default="text", description="text: lines for people. json: a JSON object on each line, for what collects logs."
    )
    access_log: bool = Field(
        default=False,
        description="Log a line for each request: method, path, status, time, request id. Health checks and scrapes "
        "that succeed have theirs only with ATTEND_LOG_LEVEL=debug.",
    )

    @property
    def log(self) -> Log:
        """The format and level of every process's log."""
        return Log(self.log_level, self.log_format)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_the_empty(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Treat an empty variable as unset. Not for keys: a mistake there would let everybody in."""
        return {name: value for name, value in given.items() if value != "" or name in ("api_keys", "api_keys_file")}

    @field_validator("port", mode="before")
    @classmethod
    def _is_no_address(cls, value: object) -> object:
        is_address = isinstance(value, str) and ADDRESS_OF_A_SERVICE.match(value)
        return cls.model_fields["port"].default if is_address else value

    @field_validator("servers", "model_memory")
    @classmethod
    def _have_loops_to_share(cls, value: int | None, others: ValidationInfo) -> int | None:
        if value is not None and value > 1 and others.data.get("loops") == 0:
            raise ValueError("needs processes that run models, but ATTEND_LOOPS is 0")
        return value

    @field_validator("rate_limit")
    @classmethod
    def _is_a_rate(cls, value: str | None) -> str | None:
        if value is not None and [rate.amount > 0 for rate in limits.parse_many(value)] != [True]:
            raise ValueError("must be one rate, such as 60/minute")
        return value

    @field_validator("trusted_proxies")
    @classmethod
    def _are_addresses(cls, value: str | None) -> str | None:
        for proxy in value.split(",") if value not in (None, "*") else ():
            ipaddress.ip_network(proxy.strip())
        return value

    @field_validator("allowed_origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                raise ValueError(f"must be origins, such as https://example.org, not {origin}")
        return value

    @field_validator("root_path")
    @classmethod
    def _is_a_path(cls, value: str) -> str:
        if not ROOT_PATH.fullmatch(value):
            raise ValueError("must be a path, such as /attend")
        return value.rstrip("/")

    @field_validator("models", "allowed_origins", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value

    @field_validator("api_keys", mode="before")
    @classmethod
    def _separate(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        keys = [key.strip() for key in value.split(",") if key.strip()]
        if not keys:  # such as "${KEY_1},${KEY_2}" with neither set, which must not let everybody in
            raise ValueError("must have at least one key")
        return keys

    @field_validator("api_keys_file", mode="before")
    @classmethod
    def _is_named(cls, value: object) -> object:
        if value == "":
            raise ValueError("must name a file")
        return value
