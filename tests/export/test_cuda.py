"""The service on ONNX Runtime's CUDA provider, with stand-in libraries whose kernels compute nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manifest.schema import Precision
from tests.export.cuda_stand_ins import CUDNN, build
from tests.export.tiny_checkpoints import Kind, MakeArtifact
from tests.running_service import ROOT, running_service

pytestmark = pytest.mark.process

Environment = dict[str, str]


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return the environment in which a process finds a GPU."""
    return build(tmp_path_factory.mktemp("site"))


def said_by(script: str, environment: Environment, *arguments: object) -> tuple[str, str]:
    """Run a Python process and return its output and its errors."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout, done.stderr


def test_the_service_starts_and_answers(gpu: Environment, artifact: MakeArtifact, tmp_path: Path) -> None:
    """On two devices, each with a process of its own."""
    artifacts = tmp_path / "artifacts"
    artifacts.mkdir()
    for kind in ("translation", "mean_classifier"):
        (artifacts / kind).symlink_to(artifact(kind, "int8"))
    settings = {"ATTEND_PROVIDER": "cuda", "ATTEND_ARTIFACTS": str(artifacts), "ATTEND_DEVICES": "0,1"}
    with running_service(tmp_path / "log", gpu | settings) as client:
        models = client.get("/models").json()["models"]
        assert [model["provider"] for model in models] == ["cuda", "cuda"]
        texts = ["a b c.", "d e f g h. i j k", "l" * 20]
        for beam_size in (1, 4):
            options = {"beam_size": beam_size, "attention": {"kinds": ["cross"]}}
            translated = client.post("/translate", json={"text": texts, "target": "fr"} | options)
            assert translated.status_code == 200, translated.text
        assert client.post("/classify", json={"text": texts}).status_code == 200
        for model in models:
            assert client.post("/embed", json={"text": texts, "model": model["name"]}).status_code == 200
        metrics = client.get("/metrics").text
        assert all(f'attend_device_ready{{device="{device}"}} 1.0' in metrics for device in (0, 1))
    assert "onnxruntime" not in (tmp_path / "log").read_text(encoding="utf-8"), "it warns"


CAPTURE = """
import sys
from pathlib import Path
import numpy as np
from service.base.artifact import read_artifact
from service.runner.device_encoder import DeviceEncoder
from service.runner.device_translation import DeviceTranslationRunner
from service.runner.provider import Provider
from service.runner.translation import TranslationGraphs

graphs = TranslationGraphs(read_artifact(Path(sys.argv[1])), Provider("cuda", 1, captures=True))
runner = DeviceTranslationRunner(graphs, DeviceEncoder(graphs, 8, 512), 8, 8)
runner.warm_up()
rows = np.arange(8)
runner.encode(rows[:3], [[5, 6, 3]] * 3)
for position in range(40):
    runner.launch(np.full(8, 5), np.full((1, 8), position), rows[:, None], rows, 2)
    runner.fetch()
    runner.copy(rows[:1], rows[1:2])
"""


@pytest.mark.parametrize(
    ("kind", "precision"),
    [
        ("translation", "fp16"),
        ("translation_post_norm", "int8"),
        ("translation_rotary", "fp16"),
        ("translation_relative", "fp16"),
    ],
)
def test_a_pass_is_captured_once_for_each_size_and_length_and_launched_from_then_on(
    gpu: Environment, artifact: MakeArtifact, tmp_path: Path, kind: Kind, precision: Precision
) -> None:
    """With vocabularies that are all, or partly, tokens of the target."""
    log = tmp_path / "log"
    said_by(CAPTURE, gpu | {"CUDA_STAND_IN_LOG": str(log)}, artifact(kind, precision))
    # The encoder reads 64 and 32 tokens to warm up, and then some sources. Each step is followed by a copy of rows. At
    # the 33rd step the caches are longer.
    said = [word for n in (1, 2, 1, 63, 1, 15) for word in ("captured", *["launched"] * n)]
    assert log.read_text().split() == [*said, *["destroyed"] * 6]


LOAD = """
import sys
from pathlib import Path
from service.base.artifact import read_artifact
from service.runner.provider import Provider
from service.runner.weights import load_session
options = Provider._options
def telling_all(self):
    found = options(self)
    found.log_severity_level = 0
    return found
Provider._options = telling_all
artifact = read_artifact(Path(sys.argv[1]))
for path in sorted(artifact.manifest.graphs):
    provider, graph = path.split("/")
    if provider == "cuda":
        load_session(artifact, Provider(provider, 1), graph)
        print(graph)
"""


@pytest.mark.parametrize(
    ("kind", "precision", "n_graphs"),
    [
        ("translation", "int8", 3),
        ("translation", "fp16", 3),
        ("translation", "fp32", 3),
        ("translation_relative", "fp16", 3),
        ("mean_classifier", "int8", 2),
        ("max_classifier", "fp16", 2),
        ("disentangled_classifier", "fp16", 2),
    ],
)
def test_no_graph_is_split_between_the_device_and_the_cpu(
    gpu: Environment, artifact: MakeArtifact, kind: Kind, precision: Precision, n_graphs: int
) -> None:
    graphs, told = said_by(LOAD, gpu, artifact(kind, precision))
    assert len(graphs.split()) == n_graphs
    assert told.count("All nodes placed on [CUDAExecutionProvider]") == n_graphs


CHOOSE = """
from service.base.errors import ProviderUnavailable
from service.runner.provider import choose_provider
print(choose_provider("auto"))
try:
    choose_provider("cuda")
except ProviderUnavailable as error:
    print(error)
"""


def test_cuda_is_not_chosen_where_cudnn_is_missing(gpu: Environment, tmp_path: Path) -> None:
    assert said_by(CHOOSE, gpu)[0] == "cuda\n"
    without = tmp_path / "site"
    site = Path(gpu["PYTHONPATH"])
    (without / "nvidia").mkdir(parents=True)
    for name in ("onnxruntime", "nvidia/cu13"):
        (without / name).symlink_to(site / name)
    chosen, reason = said_by(CHOOSE, gpu | {"PYTHONPATH": str(without)})[0].split("\n", 1)
    assert chosen == "cpu"
    assert CUDNN.split(".")[0] in reason
