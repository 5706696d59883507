"""Tensors of the Open Inference Protocol in request and answer: in JSON, or in Triton's binary extension.

A body with binary tensors begins with JSON, whose length is in the header LENGTH. The tensors follow in order; the
parameter `binary_data_size` of each one is its length. A text is its length as a little-endian uint32, then its bytes.
"""

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import Request, Response
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, Field, PrivateAttr

from service.base.errors import BadRequest, TooLarge, UnprocessableRequest, UnsupportedMediaType
from service.http.bodies import ReadBody
from service.http.compression import compressed_response
from service.http.json_route import Body, parse_json_body
from service.schemas.answers import encoded
from service.schemas.requests import valid_unicode
from service.schemas.sent import SentJson

TEXT: Literal["text_input"] = "text_input"
"""Name of the input of every model."""
LENGTH = "Inference-Header-Content-Length"
STALE = f"is {LENGTH} that of an earlier request? tritonclient writes it into the headers that it is given"

Size = Annotated[int, Field(ge=0, lt=2**63)]
Options = dict[str, Any]
MAX_DIMENSIONS = 16


class InputTensor(SentJson):
    name: Literal["text_input"]
    shape: list[Size] = Field(max_length=MAX_DIMENSIONS, description="Their product is the number of elements.")
    datatype: Literal["BYTES"]
    parameters: Options = Field(default_factory=dict, description="binary_data_size, if the data follow the JSON.")
    data: list[Any] | None = Field(default=None, description="Flat or nested.")
    _raw: bytes | None = PrivateAttr(default=None)

    def texts(self) -> list[str]:
        """Return the elements. Raises UnprocessableRequest: an element is no text, or the shape means another number of
        elements."""
        if (self._raw is None) == (self.data is None):
            raise UnprocessableRequest(
                f"{self.name}: elements must be in `data`, or follow the JSON with a `binary_data_size`"
            )
        texts = list(self._of_bytes(self._raw) if self._raw is not None else self._of_json(self.data))
        if len(texts) != math.prod(self.shape):
            raise UnprocessableRequest(f"{self.name}: `shape` {self.shape} means {math.prod(self.shape)} elements, but "
                                f"there are {len(texts)}")  # fmt: skip
        return texts

    def take(self, raw: bytes, at: int) -> int:
        """Take the data of this tensor from the bytes behind the JSON, if they are there, and return where they end.
        Raises UnprocessableRequest: `binary_data_size` is no size."""
        size = self.parameters.get("binary_data_size")
        if size is None:
            return at
        if type(size) is not int or size < 0:
            raise UnprocessableRequest(f"{self.name}: `binary_data_size` must be a number of bytes, not {size!r}")
        self._raw = raw[at : at + size]
        return at + size

    def _of_json(self, data: Any) -> Iterator[str]:
        waiting = [iter(data)]
        while waiting:
            for element in waiting[-1]:
                if isinstance(element, list):
                    waiting.append(iter(element))
                    break
                if not isinstance(element, str):
                    raise UnprocessableRequest(f"{self.name}: an element must be a string, not {element!r}")
                yield element
            else:
                waiting.pop()

    def _of_bytes(self, raw: bytes) -> Iterator[str]:
        at, number = 0, 0
        while at < len(raw):
            if at + 4 > len(raw):
                raise UnprocessableRequest(f"{self.name}: the data end within the length of element {number}")
            (length,) = struct.unpack_from("<I", raw, at)
            start, at = at + 4, at + 4 + length
            if at > len(raw):
                left = len(raw) - start
                raise UnprocessableRequest(
                    f"{self.name}: element {number} should have {length} bytes, but {left} are left"
                )
            try:
                yield raw[start:at].decode()
            except UnicodeDecodeError as error:
                raise UnprocessableRequest(f"{self.name}: element {number} is not UTF-8: {error.reason}") from None
            number += 1


class WantedOutput(SentJson):
    name: str
    parameters: Options = Field(
        default_factory=dict, description="binary_data: whether the output follows the JSON as bytes."
    )


class InferRequest(SentJson):
    id: Annotated[str, AfterValidator(valid_unicode)] | None = Field(default=None, description="Returned unchanged.")
    parameters: Options = Field(
        default_factory=dict,
        description="timeout in microseconds; binary_data_output: whether outputs follow the JSON as bytes; options.",
    )
    inputs: list[InputTensor] = Field(min_length=1, max_length=1)
    outputs: list[WantedOutput] | None = Field(default=None, description="All outputs by default.")


class OutputTensor(BaseModel):
    name: str
    datatype: Literal["BYTES", "FP32"]
    shape: list[int]
    parameters: dict[str, int] | None = Field(default=None, description="binary_data_size, in place of data.")
    data: list[Any] | None = Field(default=None, description="Flat, row after row.")


class InferAnswer(BaseModel):
    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[OutputTensor]


@dataclass(frozen=True)
class Output:
    """A tensor of an answer. `shape` is that of the input; rows of numbers add one dimension. `is_binary`: whether the
    values follow the JSON as bytes."""

    name: str
    shape: list[int]
    values: Sequence[str] | NDArray[np.float32]
    is_binary: bool

    def parts(self) -> tuple[OutputTensor, bytes]:
        """Return the tensor in the JSON, and the bytes behind the JSON."""
        numbers = self.values if isinstance(self.values, np.ndarray) else None
        tensor = OutputTensor(
            name=self.name,
            datatype="BYTES" if numbers is None else "FP32",
            shape=[*self.shape, *(() if numbers is None else numbers.shape[1:])],
        )
        if not self.is_binary:
            tensor.data = [*self.values] if numbers is None else encoded(numbers.ravel(), "json")
            return tensor, b""
        if numbers is None:
            raw = b"".join(struct.pack("<I", len(text)) + text for text in map(str.encode, self.values))
        else:
            raw = numbers.astype("<f4").tobytes()
        tensor.parameters = {"binary_data_size": len(raw)}
        return tensor, raw


def read_tensors(max_bytes: int) -> ReadBody:
    """Return a reader of bodies that may be compressed, and may have tensors behind their JSON. `max_bytes` is the
    limit of an inflated body."""

    async def read_body(model: type[Body], request: Request) -> Body:
        encoding = request.headers.get("content-encoding", "").lower()
        body = _inflated(await request.body(), encoding, max_bytes)
        length = request.headers.get(LENGTH)
        end = len(body) if length is None else _length(length, body)
        try:
            value = parse_json_body(model, body[:end])
        except BadRequest as error:
            raise BadRequest(f"{error}; {STALE}") if length is not None else error from None
        _share_out(body[end:], value.inputs if isinstance(value, InferRequest) else [])
        return value

    return read_body


async def tensor_response(
    request: InferRequest, model_name: str, model_version: str, outputs: Sequence[Output], http: Request
) -> Response:
    """Return the answer to a request. If no output is binary, it is JSON alone, without the header LENGTH."""
    parts = [output.parts() for output in outputs]
    tensors = [tensor for tensor, _ in parts]
    answer = InferAnswer.model_construct(
        model_name=model_name, model_version=model_version, id=request.id, outputs=tensors
    )
    head = answer.model_dump_json(exclude_none=True).encode()
    if not any(output.is_binary for output in outputs):
        return await compressed_response(head, http, "application/json")
    body = b"".join([head, *(raw for _, raw in parts)])
    return await compressed_response(body, http, "application/octet-stream", {LENGTH: str(len(head))})


def _inflated(body: bytes, encoding: str, max_bytes: int) -> bytes:
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        raise UnsupportedMediaType(f"Content-Encoding must be gzip or deflate, not {encoding}")
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)  # of gzip and of deflate
    try:
        inflated = inflater.decompress(body, max_bytes + 1)
    except zlib.error:
        raise BadRequest(f"The body is not {encoding}") from None
    if len(inflated) > max_bytes:
        raise TooLarge(f"The inflated body has more than {max_bytes} bytes, which is the limit")
    if not inflater.eof or inflater.unused_data:
        raise BadRequest(f"The body does not end where its {encoding} does")
    return inflated


def _length(length: str, body: bytes) -> int:
    if not (length.isascii() and length.isdigit()):
        raise BadRequest(f"{LENGTH} must be a number, not {length}")
    if len(length) > 18 or int(length) > len(body):
        raise BadRequest(f"{LENGTH} is {length}, but the body has {len(body)} bytes; {STALE}")
    return int(length)


def _share_out(raw: bytes, inputs: Sequence[InputTensor]) -> None:
    end = 0
    for tensor in inputs:
        end = tensor.take(raw, end)
    if end != len(raw):
        raise UnprocessableRequest(
            f"{len(raw)} bytes follow the JSON, but `binary_data_size` of the inputs adds up to {end}"
        )
