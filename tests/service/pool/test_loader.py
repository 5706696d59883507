"""The loader: it loads models, and replaces workers that die or hang."""

import contextlib
import errno
import os
import resource
import shutil
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from service.base.artifact import Artifact, sum_of
from service.base.errors import Broken, StartRefused, WorkerEnded
from service.base.log import Log
from service.pool.remote_loader import MAX_SOCKET_PATH_BYTES, RemoteLoader, make_run_directory
from tests.service.fakes import PATIENCE_S
from tests.service.tiny_artifacts import EOS, TinyTranslator
from tests.service.worker_services import (
    FATAL,
    DiesOf,
    Service,
    answered,
    children,
    make_service,
    pause,
    sequence,
    soon,
    unready_reason,
    until,
)

pytestmark = pytest.mark.anyio

GREEDY, BEAM = "tiny/greedy", "tiny/beam"


async def serves(service: Service, translator: TinyTranslator) -> None:
    await until(lambda: unready_reason(service.worker) is None)
    [output] = (await answered(service.worker.submit(GREEDY, [sequence(5, 6)], soon()))).outputs
    assert output.best()[0].token_ids == translator.translate([5, 6, EOS], 9)[0]


async def dies(service: Service) -> None:
    with pytest.raises(WorkerEnded, match="tiny/greedy"):
        await answered(service.worker.submit(GREEDY, [sequence(FATAL)], soon()))


@pytest.mark.process
@pytest.mark.parametrize("dies_of", ["its loop", "an answer that nobody can read", "an answer that cannot be sent"])
async def test_what_died_in_a_worker_is_replaced_and_the_next_request_served(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, dies_of: DiesOf
) -> None:
    service = await make_service(translator_artifact, dies_of=dies_of).start()
    await serves(service, tiny_translator)
    await dies(service)
    await serves(service, tiny_translator)
    await service.stop()


@pytest.mark.process
async def test_a_model_for_which_two_processes_died_is_disabled_in_every_worker_and_the_others_go_on(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    service = await make_service(translator_artifact, n_workers=2, dies_of="itself").start()
    await serves(service, tiny_translator)
    await dies(service)
    await serves(service, tiny_translator)
    await dies(service)
    reason = "it is disabled: two processes have died while they computed for it"
    await until(lambda: [unready_reason(worker) for worker in service.workers] == [reason] * 2)
    for worker in service.workers:
        with pytest.raises(Broken, match=r"tiny/beam .*disabled"):
            worker.submit(BEAM, [sequence(5, beam_size=2)], soon())
    assert len(children(service.loader._process.pid)) == 2
    await service.stop()


@pytest.mark.process
async def test_a_worker_that_dies_before_it_has_served_is_replaced_until_its_model_is_disabled(
    translator_artifact: Artifact,
) -> None:
    service = make_service(translator_artifact, dies_of="its warm-up")
    service.worker.start()
    await until(lambda: (unready_reason(service.worker) or "").startswith("it is disabled"))
    await service.stop()


@pytest.mark.process
async def test_a_process_that_hangs_is_replaced(translator_artifact: Artifact, tiny_translator: TinyTranslator) -> None:
    service = await make_service(translator_artifact, CHECK_INTERVAL_S=0.5, HUNG_S=3.0).start()
    pause(service.process_id())
    with pytest.raises(WorkerEnded):
        await answered(service.worker.submit(GREEDY, [sequence(5, 6)], soon()))
    await serves(service, tiny_translator)
    await service.stop()


@pytest.mark.process
async def test_a_loader_that_dies_is_begun_anew(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await make_service(translator_artifact).start()
    pause(service.process_id())
    waiting = service.worker.submit(GREEDY, [sequence(5, 6)], soon())
    loop_process = service.process_id()
    os.kill(service.loader._process.pid, signal.SIGKILL)
    os.kill(loop_process, signal.SIGCONT)
    with contextlib.suppress(Broken):
        await answered(waiting)
    await until(lambda: unready_reason(service.worker) == "starting")
    await serves(service, tiny_translator)
    await service.stop()


@pytest.mark.process
async def test_a_worker_that_hangs_ends_with_its_loader_and_others_take_its_requests(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    """Such a worker kept the path where its replacement was to listen, and outlived the service."""
    service = await make_service(translator_artifact, n_workers=2).start()
    hanging = service.process_id()
    assert n_listeners(hanging) == 1
    pause(hanging)
    os.kill(service.loader._process.pid, signal.SIGKILL)
    await until(lambda: has_ended(hanging))
    for _ in range(2):
        await until(lambda: all(unready_reason(worker) is None for worker in service.workers))
        await serves(service, tiny_translator)
    hanging = service.process_id()
    pause(hanging)
    await service.stop()
    await until(lambda: has_ended(hanging))


def n_listeners(process_id: int) -> int:
    """Return the number of Unix sockets with a path that the process has open."""
    mine = {os.readlink(file) for file in Path(f"/proc/{process_id}/fd").iterdir() if file.exists()}
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    listening = "00010000"
    return sum(f"socket:[{inode}]" in mine for _, _, _, flags, _, _, inode, *_ in lines if flags == listening)


def has_ended(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] in "XZ"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.process
async def test_a_loader_that_fails_and_says_so_is_begun_anew(
    translator_artifact: Artifact, tiny_translator: TinyTranslator
) -> None:
    patches: dict[str, Any] = {"MIN_PAUSE_S": "no number"}  # which it notices when a worker dies that never served
    service = await make_service(translator_artifact, **patches).start()
    former = service.loader._process.pid
    os.kill(service.process_id(), signal.SIGKILL)
    await until(lambda: service.loader._process.pid != former)
    await serves(service, tiny_translator)
    await service.stop()


@pytest.mark.process
async def test_a_worker_is_begun_as_soon_as_the_system_has_room_for_it(
    translator_artifact: Artifact, tiny_translator: TinyTranslator, capfd: pytest.CaptureFixture[str]
) -> None:
    service = await make_service(translator_artifact, n_workers=2, dies_of="its loop", MAX_PAUSE_S=0.05).start()
    loader = service.loader._process.pid
    soft, hard = resource.prlimit(loader, resource.RLIMIT_NOFILE)
    resource.prlimit(loader, resource.RLIMIT_NOFILE, (3, hard))
    await serves(service, tiny_translator)
    await dies(service)
    [output] = (await answered(service.workers[1].submit(GREEDY, [sequence(5, 6)], soon()))).outputs
    assert output.best()[0].token_ids == tiny_translator.translate([5, 6, EOS], 9)[0]
    for _ in range(3):
        await until(lambda: os.strerror(errno.EMFILE) in capfd.readouterr().err)
    assert unready_reason(service.worker) == "starting"
    resource.prlimit(loader, resource.RLIMIT_NOFILE, (soft, hard))
    await serves(service, tiny_translator)
    assert service.loader._process.pid == loader
    await service.stop()


@pytest.mark.process
def test_a_graph_that_cannot_be_loaded_refuses_the_start(translator_artifact: Artifact, tmp_path: Path) -> None:
    broken = shutil.copytree(translator_artifact.directory, tmp_path / "broken")
    manifest, encoder = translator_artifact.manifest, "cpu/encoder.onnx"
    (broken / encoder).write_bytes(b"no graph")
    with pytest.raises(StartRefused, match=r"broken.*encoder\.onnx: sha256 is"):
        make_service(Artifact(broken, manifest))
    files = manifest.files | {encoder: sum_of(broken / encoder)}
    with pytest.raises(StartRefused, match=r"broken.*encoder\.onnx.*cannot load it"):
        make_service(Artifact(broken, manifest.model_copy(update={"files": files})))


@pytest.mark.process
async def test_a_slow_model_has_a_worker_of_its_own(translator_artifact: Artifact) -> None:
    service = make_service(translator_artifact, models=("tiny", "slow"))
    assert len(service.workers) == 2
    for worker in service.workers:
        worker.start()
    shared, own = service.workers
    await until(lambda: unready_reason(shared) is None and unready_reason(own, "slow/greedy") is None)
    assert (unready_reason(shared, "slow/greedy"), unready_reason(own)) == ("starting", "starting")
    await answered(own.submit("slow/greedy", [sequence(5, 6)], soon()))
    await service.stop()


@pytest.mark.process
async def test_without_another_model_it_has_the_only_worker(translator_artifact: Artifact, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    service = make_service(translator_artifact, n_workers=2, models=("slow",), journal=journal)
    assert journal.read_text().split() == ["+slow", "-slow", "trim", "+slow", "trim"]
    (own,) = service.workers
    own.start()
    await until(lambda: unready_reason(own, "slow/greedy") is None)
    await answered(own.submit("slow/greedy", [sequence(5, 6)], soon()))
    await service.stop()


@pytest.mark.process
async def test_nobody_else_may_enter_a_folder_of_sockets_and_it_is_gone_in_the_end(
    translator_artifact: Artifact,
) -> None:
    service = await make_service(translator_artifact).start()
    folder = service.loader.paths[0].parent
    assert folder.stat().st_mode & 0o077 == 0
    await service.stop()
    assert not folder.exists()


@pytest.mark.process
def test_without_a_folder_for_its_sockets_nothing_starts(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match=r"gone \(ATTEND_RUN_DIRECTORY\): No such file"):
        RemoteLoader("nobody:loads", (), 1.0, Log("warning"), tmp_path / "gone")


def test_a_folder_whose_path_is_too_long_for_sockets_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * MAX_SOCKET_PATH_BYTES)
    long.mkdir()
    limit = rf"xxx \(ATTEND_RUN_DIRECTORY\) has \d+ bytes; .* {MAX_SOCKET_PATH_BYTES}"
    with pytest.raises(StartRefused, match=limit):
        make_run_directory(long)
    assert list(long.iterdir()) == []
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        with pytest.raises(OSError, match="too long"):
            bound.bind("y" * (MAX_SOCKET_PATH_BYTES + 1))
        bound.bind("y" * MAX_SOCKET_PATH_BYTES)


@pytest.mark.process
def test_a_loader_whose_server_was_killed_leaves_no_folder(tmp_path: Path) -> None:
    loader = RemoteLoader("nobody:loads", (), 1.0, Log("warning"), tmp_path)
    loader._socket.close()
    loader._process.wait(PATIENCE_S)
    assert list(tmp_path.iterdir()) == []
    loader.end()
