"""The settings of the service, read once from the environment: ATTEND_HOST, ATTEND_PORT, and so on."""

import ipaddress
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import limits
from pydantic import ByteSize, Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)

from manifest.schema import MAX_BEAM_SIZE
from service.base.log import Form, Log

PREFIX = "ATTEND_"

ADDRESS_OF_A_SERVICE = re.compile(r"(tcp|udp|sctp)://")
"""Prefix of the value of ATTEND_PORT that Kubernetes sets if a Service is called attend."""
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")
"""An origin as browsers send it: without a path, and without a slash at its end."""
DEVICE = re.compile(r"[0-9]{1,4}|(GPU|MIG)-[\w/-]+", re.ASCII)
"""A device as CUDA_VISIBLE_DEVICES names it."""
ROOT_PATH = re.compile(r"(/[\w.~-]+)*/?", re.ASCII)

Dialect = Literal[
    "libretranslate",
    "open_inference",
    "deepl",
    "hugging_face",
    "openai",
    "cohere",
    "google",
    "azure",
    "amazon",
    "mtranserver",
    "deeplx",
    "lingva",
    "mcp",
]
"""The interfaces of other services, by the names that `service.dialects.ALL` has."""
Seconds = Annotated[float, Field(le=86_400, allow_inf_nan=False)]


def one_rate(value: str) -> str:
    """Return a rate. Raises ValueError: the value has no rate, or several."""
    with suppress(ValueError):
        if [rate.amount > 0 for rate in limits.parse_many(value)] == [True]:
            return value
    raise ValueError("must be one rate, such as 60/minute")


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, hide_input_in_errors=True)

    host: str = Field(default="127.0.0.1", description="Address to listen on; *: all addresses of IPv4 and IPv6.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on.")
    artifacts: Path = Field(
        default=Path("artifacts"),
        description="Folder with a folder for each artifact; by default artifacts in the working directory.",
    )
    models: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Names of the models to serve, comma-separated; by default all artifacts. If several models could "
        "answer a request, the first one in this list does. Without a list the model does that comes first in "
        "/models.",
    )
    provider: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="auto: CUDA if it works, otherwise the CPU. cuda: refuse to start without CUDA."
    )
    threads: int | None = Field(
        default=None,
        ge=1,
        description="CPU threads for models, which the workers share; by default one for each worker. A slow model, "
        "which has a worker of its own, uses all of them, by default as many as there are physical cores.",
    )
    workers: int | None = Field(
        default=None,
        ge=1,
        description="Number of workers, the processes that run models; by default one for each thread or core on the "
        "CPU, four at most, and one on each GPU.",
    )
    model_memory: ByteSize | None = Field(
        default=None,
        gt=0,
        description="Limit of the memory for models, such as 2GB, on the CPU. Each model is then loaded by one worker "
        "at its first request, and models not used for the longest time are unloaded. By default there is no limit, "
        "and all models are loaded at the start.",
    )
    cache: ByteSize = Field(
        default=ByteSize(16_000_000),
        ge=0,
        description="Most memory in which each server keeps translated sentences, such as 64MB, so that it need not "
        "translate them again; 0: none. Without effect on CUDA.",
    )
    servers: int | None = Field(
        default=None,
        ge=1,
        description="Number of servers, the processes that speak HTTP, all on one port; by default one, and up to four "
        "if the workers leave cores free.",
    )
    data: Path | None = Field(
        default=None,
        description="Folder of the glossaries and documents of clients. By default the folder data in the working "
        "directory; if that cannot be written, a temporary folder, which is deleted when the service ends.",
    )
    database: SecretStr | None = Field(
        default=None,
        description="Address of a database of PostgreSQL that keeps the glossaries and documents, and that several "
        "services may share: postgresql://USER:PASSWORD@HOST:PORT/NAME, with libpq's parameters such as "
        "?sslmode=verify-full. By default a file of SQLite in the folder ATTEND_DATA.",
    )
    secrets: Path | None = Field(
        default=None,
        description="Folder whose files are settings that are secret, as containers have them: attend_database, "
        "attend_rate_store, attend_callback_secret, attend_api_keys. Variables of the environment come before files.",
    )
    run_directory: Path | None = Field(
        default=None,
        description="Folder in which the service makes a folder of its own for the sockets between its processes, and "
        "for the metrics of several servers; by default the system's folder of temporary files.",
    )
    devices: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="GPUs that run the models together, each with a worker of its own: all, or a comma-separated list "
        "of UUIDs of GPUs or MIG instances, and of numbers from 0 among the GPUs that CUDA_VISIBLE_DEVICES lists, or "
        "among all. By default the first one runs them.",
    )
    rows: int | None = Field(
        default=None,
        ge=MAX_BEAM_SIZE,
        description="Most hypotheses (decoder rows) of a model that one worker runs at once, for greedy search and for "
        "wider beams each; by default on the CPU as many as are fastest for the model (24 or 48; for wider beams twice "
        "as many), 256 on CUDA. "
        "The same limit applies to texts being classified, embedded or aligned; by default 256.",
    )
    max_waiting: int = Field(
        default=1024, ge=1, description="A request gets 503 if this many sequences would be before its own in a queue."
    )
    max_body_bytes: int = Field(default=1_048_576, ge=1, description="Largest request body; a larger one gets 413.")
    max_document_bytes: int = Field(
        default=10_485_760,
        ge=1,
        description="Largest body of a request with a document. Unpacked, a document may be four times as large.",
    )
    client_timeout_s: Seconds = Field(
        default=30.0,
        gt=0,
        description="Seconds in which a client must send the head of a request and then its whole body, and receive a "
        "part of its answer. A slower one gets 408, or is disconnected.",
    )
    max_text_characters: int = Field(default=50_000, ge=1, description="Longest text; a longer one gets 413.")
    max_texts: int = Field(default=256, ge=1, description="Most texts in one request; more get 422.")
    max_answer_numbers: int = Field(
        default=1_000_000,
        ge=1,
        description="Most numbers in one answer, about 10 bytes each as JSON: of its embeddings, or of its attention "
        "matrices. A source token that is aligned counts as 20. More get 422.",
    )
    default_timeout_s: Seconds = Field(
        default=30.0, gt=0, description="Seconds until a request without timeout_s gets 504."
    )
    max_timeout_s: Seconds = Field(default=300.0, gt=0, description="Largest timeout_s that a request may ask for.")
    document_timeout_s: Seconds = Field(
        default=3600.0, gt=0, description="Seconds, waiting included, after which a document is given up."
    )
    documents_kept_s: Seconds = Field(
        default=3600.0, gt=0, description="Seconds for which a document is kept after it was translated, or has failed."
    )
    max_documents: int = Field(
        default=100,
        ge=1,
        description="Most documents that wait, are being translated or are kept. One more replaces a document that was "
        "fetched, or whose failure was told, or gets 503.",
    )
    callback_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Hosts, comma-separated, such as hooks.example.org, that may be called when a document or a batch "
        "is finished (callback_url). None by default.",
    )
    callback_secret: SecretStr | None = Field(
        default=None,
        validate_default=True,
        description="Key of the signatures of these calls; required with ATTEND_CALLBACK_HOSTS.",
    )
    drain_timeout_s: Seconds = Field(
        default=30.0, ge=0, description="Seconds after SIGTERM in which accepted requests are still answered."
    )
    drain_delay_s: Seconds = Field(
        default=0.0,
        ge=0,
        description="Seconds after SIGTERM for which the service listens at least, not ready and answering 503, so "
        "that load balancers notice before it ends.",
    )
    probe_interval_s: Seconds = Field(
        default=15.0,
        ge=0.1,  # the probes of a few models take some hundredths of a second each
        description="Seconds between the forward passes by which an idle model proves itself, and between checks of "
        "its files. After three times as long without any pass in a worker, its models are not ready.",
    )
    api_keys: Annotated[frozenset[SecretStr], NoDecode] = Field(
        default=frozenset(), description="Comma-separated keys; if any, requests need Authorization: Bearer <key>."
    )
    api_keys_file: Path | None = Field(
        default=None,
        description="File of keys, valid beside those of ATTEND_API_KEYS: one a line, or in TOML with names, rates, "
        "characters a month and routes (docs/operate.md).",
    )
    rate_limit: str | None = Field(
        default=None,
        description="Limit of the requests of one client, such as 60/minute; more get 429. The window slides, and "
        "counts are exact to about one request. By default there is no limit.",
    )
    rate_store: SecretStr | None = Field(
        default=None,
        description="Address of a Redis or Valkey in which several services count the requests of clients together: "
        "redis://USER:PASSWORD@HOST:PORT. By default each service counts by itself.",
    )
    trusted_proxies: str | None = Field(
        default=None,
        description="Addresses or networks, comma-separated, of proxies whose X-Forwarded-For names the client; *: "
        "any. None by default: the client is whoever connects.",
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins, comma-separated, such as https://example.org, whose pages may read answers in a browser "
        "(CORS); *: all. None by default.",
    )
    dialects: Annotated[tuple[Dialect, ...], NoDecode] = Field(
        default=get_args(Dialect),
        description="Interfaces of other services that are spoken beside the native one, comma-separated; none: only "
        "the native one. By default all.",
    )
    root_path: str = Field(
        default="",
        description="Path under which a proxy offers the service, such as /attend, whether or not the proxy removes "
        "it. By default the service is at the root.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Lowest level that is logged."
    )
    log_format: Form = Field(
        default="text", description="text: lines for people. json: a JSON object on each line, for log collectors."
    )
    access_log: bool = Field(
        default=False,
        description="Log a line for each request: method, path, status, time, request id. Health checks and scrapes "
        "that succeed are logged only with ATTEND_LOG_LEVEL=debug.",
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

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read the arguments, the environment, and then the files of the folder that one of them names."""
        folder = init_settings().get("secrets") or env_settings().get("secrets")
        if not folder or not Path(folder).is_dir():
            return init_settings, env_settings
        return init_settings, env_settings, SecretsSettingsSource(settings_cls, folder)

    def secret(self, name: str) -> str | None:
        """Return the value of a secret setting; None if it is not set."""
        given: SecretStr | None = getattr(self, name)
        return None if given is None else given.get_secret_value().strip()

    @field_validator("port", mode="before")
    @classmethod
    def _is_no_address(cls, value: object) -> object:
        is_address = isinstance(value, str) and ADDRESS_OF_A_SERVICE.match(value)
        return cls.model_fields["port"].default if is_address else value

    @field_validator("devices")
    @classmethod
    def _are_devices(cls, value: tuple[str, ...], others: ValidationInfo) -> tuple[str, ...]:
        if value and others.data.get("provider") == "cpu":
            raise ValueError("names GPUs, but ATTEND_PROVIDER is cpu")
        if value != ("all",) and not all(map(DEVICE.fullmatch, value)):
            raise ValueError("must be all, or numbers and UUIDs such as 0,1 or GPU-8f2c,MIG-41d0")
        if len(set(value)) < len(value):
            raise ValueError("must name each device once")
        return value

    @field_validator("secrets")
    @classmethod
    def _is_a_folder(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_dir():
            raise ValueError("must be a folder")
        return value

    @field_validator("rate_limit")
    @classmethod
    def _is_a_rate(cls, value: str | None) -> str | None:
        return value if value is None else one_rate(value)

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

    @field_validator("callback_secret")
    @classmethod
    def _belongs_to_hosts(cls, value: SecretStr | None, others: ValidationInfo) -> SecretStr | None:
        if value is None and others.data.get("callback_hosts"):
            raise ValueError("is required with ATTEND_CALLBACK_HOSTS: its calls are signed")
        return value

    @field_validator("models", "devices", "allowed_origins", "callback_hosts", "dialects", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value

    @field_validator("dialects", mode="before")
    @classmethod
    def _may_be_none(cls, value: object) -> object:
        return () if value == "none" else value

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
