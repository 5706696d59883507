"""Stand-ins for the CUDA libraries, so that ONNX Runtime's own CUDA provider runs on a machine without a GPU.

It loads graphs, chooses kernels, checks their inputs, binds memory and copies as it would there; only kernels compute
nothing. The functions it links are read from the provider itself, so its next version needs no other stand-ins.
"""

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import onnxruntime
import pytest

PACKAGE = Path(onnxruntime.__file__).parent
PROVIDER = PACKAGE / "capi" / "libonnxruntime_providers_cuda.so"
SOURCE = Path(__file__).with_suffix(".c")
CUDNN, DRIVER = "libcudnn.so.9", "libcuda.so.1"
FOLDERS = {CUDNN: "nvidia/cudnn/lib", DRIVER: "driver"}


def build(site: Path) -> dict[str, str]:
    """Compile the libraries into `site`, laid out as NVIDIA's Python packages beside ONNX Runtime, and the driver as
    the system's.

    Returns:
        The environment in which a process finds them.
    """
    if not PROVIDER.exists() or not all(map(shutil.which, ("cc", "nm", "readelf"))):
        pytest.skip("this needs ONNX Runtime's CUDA provider, a C compiler, nm and readelf")
    functions = _linked_functions()
    for library in _needed_libraries() | {CUDNN}:
        path = site / FOLDERS.get(library, "nvidia/cu13/lib") / library
        path.parent.mkdir(parents=True, exist_ok=True)
        _compile(path, sorted(functions[library]))
    (site / "onnxruntime").symlink_to(PACKAGE)
    return {
        "PYTHONPATH": str(site),
        "LD_LIBRARY_PATH": str(site / "driver"),
        "ORT_ENABLE_XQA": "0",  # its kernels are asked for the memory that they need, and have no answer
    }


def _needed_libraries() -> set[str]:
    said = subprocess.run(["readelf", "--dynamic", PROVIDER], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"\[(libcu\w+\.so\.\d+)\]", said))


def _linked_functions() -> dict[str, set[str]]:
    """Return the functions by library; the driver's have no version, and those of cuDNN are looked up when called."""
    said = subprocess.run(["nm", "-D", "--undefined-only", PROVIDER], check=True, capture_output=True, text=True).stdout
    functions: dict[str, set[str]] = defaultdict(set)
    for name, library in re.findall(r"U (\w+)@?(\S*)$", said, re.MULTILINE):
        if library.startswith("libcu") or name.startswith("cu"):
            functions[library or DRIVER].add(name)
    functions[CUDNN] = {name.decode() for name in re.findall(rb"cudnn[A-Z]\w+", PROVIDER.read_bytes())}
    return functions


def _compile(path: Path, functions: list[str]) -> None:
    """Compile functions from the source where it has them; all others return 0."""
    rest, versions = path.with_suffix(".c"), path.with_suffix(".map")
    rest.write_text("".join(f"__attribute__((weak)) int {name}(void) {{ return 0; }}\n" for name in functions))
    exported = f"global: {'; '.join(functions)}; " if functions else ""
    versions.write_text(f"{path.name} {{ {exported}local: *; }};")
    linker = [f"-Wl,-soname,{path.name}", f"-Wl,--version-script={versions}"]
    subprocess.run(["cc", "-w", "-shared", "-fPIC", *linker, "-o", path, SOURCE, rest], check=True)
