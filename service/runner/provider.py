"""The execution provider: which one this machine can use, its sessions and its memory."""

import contextlib
import functools
import io
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnxruntime
from numpy.typing import DTypeLike, NDArray
from onnxruntime import OrtValue, RunOptions

from service.base.errors import ProviderUnavailable, StartRefused
from service.runner.arrays import Field, GraphArrays
from service.runner.device_graphs import PROBE

FATAL_ONLY, ERRORS_ONLY, WARNINGS = 4, 3, 2  # ONNX Runtime's severities

SLOWER_FUSIONS = ["SkipLayerNormFusion", "MatMulIntegerToFloatFusion"]
"""Fusions that are disabled. The kernel of the first is not vectorized on the CPU: a decoder step of 32 rows takes an
eighth less time without it. The second would put the scales of the last product back into it, where a step of one row
takes a tenth more time."""

# No `device_id`: by default it is the first GPU that the process sees. If one is given, ONNX Runtime looks for a CUDA
# provider that was registered as a plugin, and warns "No registered plugin EP device found".
CUDA_OPTIONS = {
    "arena_extend_strategy": "kSameAsRequested",
    "use_tf32": "0",  # full float32 products: an answer must not depend on which kernel a batch size selects
    # The thread's own stream (cudaStreamPerThread), for all sessions: what one launches comes after what others have
    # launched, and a copy from or to main memory waits for both.
    "user_compute_stream": "2",
}


MAX_CAPTURES = 1024
"""Most passes that are captured, each of one size. ONNX Runtime keeps them as long as the graph is loaded."""
NOT_CAPTURED = -1


@dataclass(frozen=True)
class Provider:
    """The execution provider on which graphs run.

    Args:
        threads: number of threads of one forward pass on the CPU.
        captures: whether decoder steps and encoder passes are captured as CUDA graphs, which are then launched as a
            whole. Nothing else in this process may use CUDA during a capture.
        shares_arena: whether all sessions on the CPU compute in the same memory, which is never returned.
    """

    name: Literal["cpu", "cuda"]
    threads: int
    captures: bool = False
    shares_arena: bool = False

    def session(
        self,
        graph: bytes,
        tensors: Mapping[str, NDArray[Any]] | None = None,
        shared: Iterable[str] = (),
        captured: bool = False,
        name: str = "a graph of this provider",
    ) -> onnxruntime.InferenceSession:
        """Load a graph.

        Args:
            graph: the content of the graph's file.
            tensors: tensors that the graph names and does not contain.
            shared: names of tensors that all sessions on the CPU share. ONNX Runtime copies the others.
            captured: whether runs with a number (`gpu_graph_id`) are captured as CUDA graphs. Their inputs and outputs
                must stay where they are, and inputs in main memory keep the values of the captured run.
            name: the name of the graph in error messages.

        Raises:
            StartRefused: ONNX Runtime cannot load the graph, or not on this provider.
        """
        if self.name == "cuda":
            _load_cuda()
        options = self._options()
        in_place = self._give(tensors or {}, shared, options)
        try:
            session = onnxruntime.InferenceSession(
                graph, options, self._providers(captured), disabled_optimizers=SLOWER_FUSIONS
            )
        except Exception as error:  # its exception types share no base
            reason = _first_line(error)
            raise StartRefused(f"{name}: ONNX Runtime {onnxruntime.__version__} cannot load it: {reason}") from error
        # If a provider cannot be started, ONNX Runtime silently takes the next one.
        if self.name == "cuda" and "CUDAExecutionProvider" not in session.get_providers():
            raise StartRefused(
                f"{name}: ONNX Runtime {onnxruntime.__version__} could not start its CUDA provider "
                "(no GPU, no driver, or no CUDA libraries)"
            )
        session.in_place = in_place  # ONNX Runtime has only their addresses: the session keeps their memory alive
        session.tables = []
        return session

    @property
    def dtype(self) -> DTypeLike:
        """The type of activations and caches."""
        return np.float32 if self.name == "cpu" else np.float16

    def arrays(self, **fields: Field) -> GraphArrays:
        """Return small arrays that this provider's graphs read or write."""
        return GraphArrays(None if self.name == "cpu" else self.name, **fields)

    def _options(self) -> onnxruntime.SessionOptions:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # an idle service burns no CPU
        if self.name == "cpu" and self.shares_arena:
            _register_arena()
            options.add_session_config_entry("session.use_env_allocators", "1")
            options.enable_mem_pattern = False  # it would keep one block for each shape of inputs
        return options

    def _give(
        self, tensors: Mapping[str, NDArray[Any]], shared: Iterable[str], options: onnxruntime.SessionOptions
    ) -> list[OrtValue]:
        """Add a graph's tensors to the options of its session. Return those that the session shares."""
        values = {name: OrtValue.ortvalue_from_numpy(tensor) for name, tensor in tensors.items()}
        options.add_external_initializers(list(values), list(values.values()))  # this copies all but the shared ones
        in_place = {} if self.name == "cuda" else {name: values[name] for name in shared}
        for name, value in in_place.items():
            options.add_initializer(name, value)
        return list(in_place.values())

    def _providers(self, captured: bool) -> list[Any]:
        cpu = "CPUExecutionProvider"
        if self.name == "cpu":
            return [cpu]
        return [("CUDAExecutionProvider", CUDA_OPTIONS | {"enable_cuda_graph": str(int(captured))}), cpu]


class Captures:
    """Options for the runs of graphs that are captured as CUDA graphs, if the provider captures any."""

    def __init__(self, provider: Provider) -> None:
        self._captures = provider.captures
        self._numbers = itertools.chain(range(1, MAX_CAPTURES + 1), itertools.repeat(NOT_CAPTURED))

    def new(self) -> RunOptions | None:
        """Return new options for all runs of one pass at one size; None if nothing is captured. The first run is
        captured, and later ones are launched as a whole."""
        if not self._captures:
            return None
        options = _numbered(next(self._numbers))
        options.add_run_config_entry("disable_synchronize_execution_providers", "1")  # the caller waits by itself
        return options

    def none(self) -> RunOptions | None:
        """Return options for runs of these graphs that are not captured."""
        return _numbered(NOT_CAPTURED) if self._captures else None


def _numbered(number: int) -> RunOptions:
    """Each captured run of a graph has a number."""
    options = RunOptions()
    options.add_run_config_entry("gpu_graph_id", str(number))
    return options


def choose_provider(
    wanted: Literal["auto", "cpu", "cuda"], whose: str = "ATTEND_PROVIDER is cuda"
) -> Literal["cpu", "cuda"]:
    """Return the provider to use. `whose` says in the error which settings want CUDA. Raises ProviderUnavailable: CUDA
    is wanted and cannot be used."""
    if wanted != "cpu":
        reason = _why_unusable(Provider("cuda", threads=1))
        if reason is None:
            return "cuda"
        if wanted == "cuda":
            raise ProviderUnavailable(f"{whose}, but CUDA cannot be used here: {reason}")
    return "cpu"


def _why_unusable(cuda: Provider) -> str | None:
    """Run a graph with the operators in use. It is not enough that CUDA is listed, since it is listed on machines
    without a GPU too; nor that a graph is loaded, since some libraries are looked for when kernels run."""
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return f"this build of ONNX Runtime {onnxruntime.__version__} has no CUDA provider"
    with _quiet():
        try:
            cuda.session(PROBE).run(None, {"numbers": np.ones((1, 1, 64), np.float32)})
        except StartRefused as error:
            return str(error)
        except Exception as error:  # ONNX Runtime's exception types share no base
            return _first_line(error)
    return None


@functools.cache
def _register_arena() -> None:
    """Sessions share this memory, in this process and those that are forked from it."""
    where = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    onnxruntime.create_and_register_allocator(where, onnxruntime.OrtArenaCfg({}))


@functools.cache
def _load_cuda() -> None:
    """Each process must load CUDA libraries that are installed as Python packages itself."""
    with contextlib.redirect_stdout(io.StringIO()):  # without its report of missing ones: the system may have them
        onnxruntime.preload_dlls()


@contextlib.contextmanager
def _quiet() -> Any:
    """ONNX Runtime would report missing libraries while it is tested whether they are missing."""
    onnxruntime.set_default_logger_severity(FATAL_ONLY)
    yield
    onnxruntime.set_default_logger_severity(WARNINGS)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
