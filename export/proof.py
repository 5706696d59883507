"""The proof that an artifact's graphs are those of its checkpoint: ONNX Runtime against PyTorch, on real and on random
input.

A wrong graph is wrong in float32 too. So graphs are run in their float form (`export.float_form`), which may differ
from PyTorch with the stored weights by the last bits alone; a model that amplifies last bits is allowed what it makes
of them in PyTorch. Stored weights are compared to the checkpoint's. What rounding costs is no part of the proof: it is
measured (`export.nearness`).

PyTorch reads each sequence alone, unpadded and without a cache. ONNX Runtime gets batches with arbitrary ids in the
padding, and decodes with rows at different positions whose caches are written in place.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
import torch

from export.attention_proof import AttentionRun, examine_matrices
from export.calibration import ServedModel, ids_of_words
from export.copying import drop_large_weights
from export.decoding import DecoderRows, Translator
from export.examination import HALF_TOLERANCE, TOLERANCES, Array, Examination, relative_error
from export.float_form import open_float_form
from export.padding import MIN_TOKENS, pad
from export.reference import (
    DENSE,
    LAST_BITS,
    LAST_BITS_OF_HALF,
    MEMORY,
    STATES,
    STEPS,
    Outputs,
    centred,
    mean_state,
    other_last_bits,
    reference_of,
)
from export.signatures import LAST_HIDDEN_STATE
from manifest.layout import WEIGHTS
from manifest.schema import Manifest, Provider
from model.checkpoint import Checkpoint, load_checkpoint
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder
from model.progress import step
from model.weights import read_weights, strays

TEXTS = (
    "A man is riding a horse on the beach.",
    "Two dogs run across the snow while a child in a red coat watches them.",
    "No.",
    "She asked him whether he had already read the book that she gave him last week.",
    "The law comes into force on 1 January 2027.",
    "I could watch this film every week, and I would still laugh at the ending.",
    "Nothing works: a weak script, tired actors and two hours that feel like four.",
)
"""Real texts, which we wrote ourselves."""
RANDOM_LENGTHS = (1, 2, 3, 7, 19, 40)
LARGE_TABLE = 100e6
"""Size of a token table beyond which a model reads only two of the random lengths."""
MAX_TARGET_TOKENS = 16
"""Long enough for every row to be at a position of its own."""
CANDIDATE_COUNTS = (1, 2, 9)
"""Numbers of candidates that searches ask for, from greedy search to the widest beam; the proof asks for all."""
ASKED_EVERY = 5
"""Steps between those at which few candidates are compared to all."""
ROWS_OF_A_SOURCE = 3
"""Rows per source, the queries of one cross-attention, as in beam search."""
N_ALONE = 3
"""Sequences that are also run alone."""


class ProofError(RuntimeError):
    """The artifact does not compute what its checkpoint does."""


def prove(directory: Path, manifest: Manifest, checkpoint: Checkpoint, everything: bool = False) -> list[str]:
    """Return what was measured, one line each.

    Args:
        checkpoint: its large weights are dropped as soon as they were compared.
        everything: whether graphs of providers that this machine does not have are run too.

    Raises:
        ProofError: a measurement exceeds its tolerance; the message has its line.
    """
    step("proving weights")
    examinations = {"weights": Examination()}
    prove_weights(examinations["weights"], directory, checkpoint.model)
    drop_large_weights(checkpoint.model)
    sequences = proof_sequences(checkpoint, manifest)
    assert isinstance(checkpoint.model, ServedModel)
    with torch.inference_mode():
        for provider in manifest.providers:
            if everything or provider == "cpu" or shutil.which("nvidia-smi"):
                step(f"proving the graphs for {provider}")
                examinations[provider] = prove_graphs(directory, manifest, provider, checkpoint.model, sequences)
    failed = [f"{name}: {line}" for name, examination in examinations.items() for line in examination.failed]
    if failed:
        raise ProofError("; ".join(failed))
    return [f"{name}: {line}" for name, examination in examinations.items() for line in examination.lines]


def prove_weights(examination: Examination, directory: Path, model: torch.nn.Module) -> None:
    """Check that no stored number is farther from the model's than its type explains."""
    stored = read_weights(directory / WEIGHTS)
    wrong = [name for name, tensor in model.state_dict().items() if strays(name, stored, tensor)]
    named = f" ({', '.join(wrong)})" if wrong else ""
    examination.record("tensors farther from the checkpoint's than rounding", f"{len(wrong)}{named}", not wrong)


def prove_graphs(
    directory: Path, manifest: Manifest, provider: Provider, model: ServedModel, sources: list[list[int]]
) -> Examination:
    """Check every graph of a provider against PyTorch with the stored weights.

    Sessions and PyTorch hold all weights of a large model, so that they take turns.

    Args:
        model: the model before its weights were rounded.
    """
    is_half = any("float16" in types for name, types in manifest.graphs.items() if name.startswith(f"{provider}/"))
    examination, threads = Examination(HALF_TOLERANCE if is_half else TOLERANCES["fp32"]), os.cpu_count() or 1
    padding, targets = manifest.dimensions.vocab_size - 1, list[list[int]]()
    outputs: Outputs = {}
    if isinstance(model, Transformer):
        translator = Translator(directory, manifest, 3, provider, threads, in_floats=True)
        outputs, targets = run_translator(examination, translator, model, sources)
        encoder = translator.encoder
        del translator  # the next graph holds the same weights once more
    else:
        name = "encoder" if isinstance(model, TransformerEncoder) else "classifier"
        encoder = open_float_form(directory, manifest, f"{provider}/{name}.onnx", threads)
        if isinstance(model, TransformerClassifier):
            outputs = run_classes(examination, encoder, model, sources, padding)
    outputs[STATES] = run_states(examination, encoder, sources, padding)
    del encoder
    reference = reference_of(stored_model(directory), sources, targets)
    if isinstance(model, TransformerEncoder) and model.config.dense:
        dense = open_float_form(directory, manifest, f"{provider}/dense.onnx", threads)
        outputs[DENSE] = run_dense(examination, dense, model, reference[STATES])
    for name, arrays in outputs.items():
        examination.check_close(name, arrays, reference[name])
    attention = open_float_form(directory, manifest, f"{provider}/attention.onnx", threads)
    run = AttentionRun(attention, sources, [[manifest.special_tokens.bos, *ids] for ids in targets], padding)
    examine_matrices(examination, run, {name: reference[name] for name in run.names}, rows_alone(sources))
    if examination.failed:
        del attention, run
        stored = stored_model(directory)
        with other_last_bits(stored, LAST_BITS_OF_HALF if is_half else LAST_BITS):
            again = reference_of(stored, sources, targets)
        examination.allow_for({name: relative_error(again[name], arrays) for name, arrays in reference.items()})
    return examination


def stored_model(directory: Path) -> ServedModel:
    """Return an artifact's model in PyTorch, with the weights that it stores."""
    model = load_checkpoint(directory).model
    assert isinstance(model, ServedModel)
    return model


def proof_sequences(checkpoint: Checkpoint, manifest: Manifest) -> list[list[int]]:
    """Return real and random sequences of many lengths; fewer random ones for a model with a `LARGE_TABLE`, which is
    slow."""
    limit = manifest.limits.max_source_tokens
    real = checkpoint.encode([*TEXTS, *checkpoint.pairs_of(TEXTS)])
    random = np.random.default_rng(0)
    words = ids_of_words(manifest.dimensions.vocab_size, manifest.special_tokens)
    is_large = manifest.dimensions.vocab_size * manifest.dimensions.d_model > LARGE_TABLE
    lengths = [min(length, limit) for length in (RANDOM_LENGTHS[::5] if is_large else RANDOM_LENGTHS)]
    made_up = [random.choice(words, length).tolist() for length in lengths]
    return [ids for ids in real if len(ids) <= limit] + made_up


def run_translator(
    examination: Examination, translator: Translator, model: Transformer, sources: list[list[int]]
) -> tuple[Outputs, list[list[int]]]:
    """Check greedy search and few candidates; return what encoder and decoder compute, and the translations."""
    limit = min(MAX_TARGET_TOKENS, translator.manifest.limits.max_target_tokens)
    together = translator.greedy(sources, limit, admit_per_step=1)
    rows = rows_alone(sources)
    alone = [translator.greedy([sources[row]], limit)[0].ids for row in rows]
    examination.check_equal("translations together and alone", [together[row].ids for row in rows], alone)
    targets = [hypothesis.ids[: limit - 1] for hypothesis in together]
    known = model.is_target_token.numpy()
    forced = forced_distributions(examination, translator, sources, targets, int(known.sum()))
    examination.check_zero("probabilities of tokens that no target has", (np.exp(x[:, ~known]) for x in forced))
    steps = [centred(x[:, known]) for x in forced]
    return {MEMORY: padded_memory(translator, sources), STEPS: steps}, targets


def rows_alone(sources: Sequence[object]) -> list[int]:
    """Return the rows of sequences that are also run alone."""
    return sorted({i * (len(sources) - 1) // (N_ALONE - 1) for i in range(N_ALONE)})


def run_classes(
    examination: Examination,
    session: ort.InferenceSession,
    model: TransformerClassifier,
    sequences: Sequence[list[int]],
    padding: int,
) -> Outputs:
    """Check that token logits are 0 in padding; return the logits of sequences, and of tokens if these are pooled."""
    ids, lengths = pad(sequences, padding, MIN_TOKENS)
    names = ["logits"] if model.config.pools_states else ["logits", "token logits"]
    outputs = [name.replace(" ", "_") for name in names]
    values = dict(zip(names, session.run(outputs, {"input_ids": ids, "lengths": lengths}), strict=True))
    if (of_tokens := values.get("token logits")) is not None:
        pairs = list(zip(of_tokens, lengths, strict=True))
        examination.check_zero("token logits in padding", [row[length:] for row, length in pairs])
        return {"logits": list(values["logits"]), "token logits": [row[:length] for row, length in pairs]}
    return {"logits": list(values["logits"])}


def run_states(
    examination: Examination, session: ort.InferenceSession, sequences: Sequence[list[int]], padding: int
) -> list[Array]:
    """Return the encoder states of each token, and check that they are the same alone."""

    def states(together: Sequence[list[int]]) -> list[Array]:
        ids, lengths = pad(together, padding, MIN_TOKENS)
        names = [value.name for value in session.get_inputs()]
        (in_batch,) = session.run([LAST_HIDDEN_STATE], dict(zip(names, (ids, lengths), strict=True)))
        return [row[:length] for row, length in zip(in_batch, lengths, strict=True)]

    in_batch, rows = states(sequences), rows_alone(sequences)
    alone = [states([sequences[row]])[0] for row in rows]
    examination.check_close(f"{STATES}: together and alone", alone, [in_batch[row] for row in rows])
    return in_batch


def run_dense(
    examination: Examination, session: ort.InferenceSession, model: TransformerEncoder, states: Sequence[Array]
) -> list[Array]:
    """Return what the dense layers make of pooled states, and check that it is the same beside a row of zeros."""
    pooled = torch.cat([mean_state(model, torch.from_numpy(rows)[None]) for rows in states]).numpy()
    (together,) = session.run(None, {"pooled": pooled})
    alone = [session.run(None, {"pooled": np.stack([row, np.zeros_like(row)])})[0][0] for row in pooled]
    examination.check_equal("dense layers together and alone", together.tolist(), [row.tolist() for row in alone])
    return [row[None] for row in together]


def padded_memory(translator: Translator, sources: list[list[int]]) -> list[Array]:
    """Return ONNX Runtime's keys and values from one padded batch, with the vocabulary's last word as padding."""
    ids, lengths = pad(sources, padding=translator.manifest.dimensions.vocab_size - 1)
    present = translator.encoder.run(translator.memory_names, {"input_ids": ids, "source_lengths": lengths})
    return [array[row, :length] for row, length in enumerate(lengths) for array in present]


def forced_distributions(
    examination: Examination, translator: Translator, sources: list[list[int]], targets: list[list[int]], n_known: int
) -> list[Array]:
    """Return ONNX Runtime's log-probabilities, step by step, of all n_known tokens that can be produced.

    At some steps few candidates are asked for too; they must be, bit for bit, the best of all, in any order of equals.
    """
    size = translator.manifest.dimensions.target_vocab_size
    distributions = [np.full((len(target) + 1, size), -np.inf, np.float32) for target in targets]
    few, best_of_all = [], []
    for step_, rows in enumerate(forced_rows(translator, sources, targets, ROWS_OF_A_SOURCE)):
        rows.ask_for(n_known)
        token_ids, log_probs = rows.step()
        running = positions_at(step_, targets)
        for row, position in running.items():
            distributions[row][position, token_ids[row]] = log_probs[row]
        for k in CANDIDATE_COUNTS if step_ % ASKED_EVERY == 0 else ():
            rows.ask_for(k)
            token_ids, log_probs = rows.step()
            for row, position in running.items():
                of_all = distributions[row][position]
                few += [log_probs[row].tolist(), of_all[token_ids[row]].tolist()]
                best_of_all += [np.sort(np.partition(of_all, -k)[-k:])[::-1].tolist()] * 2
    examination.check_equal("few candidates and the best of all", few, best_of_all)
    return distributions


def forced_rows(
    translator: Translator, sources: list[list[int]], targets: list[list[int]], rows_of_a_source: int
) -> Iterator[DecoderRows]:
    """Yield decoder rows before each step, one row for each source; row r enters at step r.

    Args:
        rows_of_a_source: W. Each source also has the rows after its own, which comes last; their outputs are ignored.
    """
    R, W = len(sources), rows_of_a_source
    rows = DecoderRows(translator.decoder_step, translator.manifest, R, max(map(len, sources)), translator.dtype)
    rows.rows_of_sources = (np.arange(R)[:, None] + np.arange(W)[::-1]) % R
    rows.places_of_rows = np.arange(R) * W + W - 1
    memories = translator.encode(sources)
    for step_ in range(R + max(map(len, targets))):
        for row, position in positions_at(step_, targets).items():
            if position == 0:
                rows.admit(row, translator.manifest.special_tokens.bos, memories[row])
            else:
                rows.advance(row, targets[row][position - 1])
        yield rows


def positions_at(step: int, targets: list[list[int]]) -> dict[int, int]:
    """Return the position of each row that is reading a target."""
    return {row: step - row for row, target in enumerate(targets) if 0 <= step - row <= len(target)}
