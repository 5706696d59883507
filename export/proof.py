"""The proof that an artifact does what its checkpoint does: ONNX Runtime against PyTorch, on real and on random input.

Stored weights are compared to the checkpoint's, and the graphs of both providers, run on the CPU, to PyTorch with the
stored weights.

PyTorch reads each sequence alone, unpadded and without a cache. ONNX Runtime gets batches with arbitrary ids in the
padding, and decodes with rows at different positions whose caches are written in place.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray

from export.attention_proof import ALONE_TOLERANCE, prove_classifier_attention, prove_translation_attention
from export.calibration import ids_of_words
from export.classifying import Classifier
from export.decoding import DecoderRows, Translator
from export.examination import Examination
from export.manifest import Manifest, Precision, Provider, providers
from export.padding import MIN_TOKENS, pad
from export.session import open_session
from export.signatures import LAST_HIDDEN_STATE
from model.checkpoint import Checkpoint, Model, load_checkpoint
from model.decoding.search import greedy_search, greedy_search_uncached
from model.networks.transformer import Transformer, TransformerClassifier, TransformerEncoder

Array = NDArray[Any]

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
MAX_TARGET_TOKENS = 24
"""Long enough for every row to be at a position of its own, and short enough for decoding without a cache."""

CANDIDATE_COUNTS = (1, 2, 9)
"""Numbers of candidates that searches ask for, from greedy search to the widest beam; the proof asks for all."""

ROWS_OF_A_SOURCE = 3
"""Rows per source, the queries of one cross-attention, as in beam search."""


class ProofError(RuntimeError):
    """The artifact does not compute what its checkpoint does."""


def prove(directory: Path, manifest: Manifest, checkpoint: Checkpoint) -> list[str]:
    """Return what was measured, one line each.

    Raises:
        ProofError: a measurement exceeds its tolerance; the message has its line.
    """
    written = load_checkpoint(directory)
    stored = written.model
    weights = Examination(manifest.precision)
    prove_weights(weights, stored, checkpoint.model)
    if manifest.precision == "int8":
        weights.record(f"in floats: {', '.join(matrices_in_floats(written.stored)) or 'none'}", True)
    examinations = {"weights": weights}
    sequences = proof_sequences(checkpoint, manifest)
    with torch.inference_mode():
        for provider in providers(manifest):
            # A graph that rounds while it runs is compared to the model before any rounding.
            in_int8 = provider == "cpu" and manifest.precision == "int8"
            precision: Precision = "int8" if in_int8 else "fp32" if provider == "cpu" else "fp16"
            model = checkpoint.model if in_int8 else stored
            examinations[provider] = Examination(precision)
            prove_graphs(examinations[provider], directory, manifest, provider, model, sequences)
    failed = [f"{name}: {line}" for name, examination in examinations.items() for line in examination.failed]
    if failed:
        raise ProofError("; ".join(failed))
    return [f"{name}: {line}" for name, examination in examinations.items() for line in examination.measured]


def prove_weights(examination: Examination, stored: Model, model: Model) -> None:
    """Compare each stored tensor by itself, so that large ones do not hide a small one."""
    pairs = zip(stored.state_dict().values(), model.state_dict().values(), strict=True)
    worst = max(pairs, key=lambda pair: float((pair[0].float() - pair[1].float()).norm() / pair[1].float().norm()))
    examination.check_close("the most different tensor", [worst[0].numpy()], [worst[1].numpy()])


def matrices_in_floats(stored: Mapping[str, torch.Tensor]) -> list[str]:
    """Return the matrices that are not int8: narrow ones, and those that int8 would change too much."""
    return sorted(
        name
        for name, tensor in stored.items()
        if name.endswith(".weight") and tensor.ndim == 2 and tensor.is_floating_point()
    )


def prove_graphs(
    examination: Examination,
    directory: Path,
    manifest: Manifest,
    provider: Provider,
    model: Model,
    sequences: list[list[int]],
) -> None:
    """Check every graph of a provider."""
    rubbish = manifest.dimensions.vocab_size - 1
    if isinstance(model, Transformer):
        limit = min(MAX_TARGET_TOKENS, manifest.limits.max_target_tokens)
        translator = Translator(directory, manifest, n_rows=3, provider=provider)
        hypotheses = prove_translation(examination, translator, model, sequences)
        states = [model.encode(ids, torch.ones_like(ids, dtype=torch.bool)) for ids, _ in map(as_batch, sequences)]
        prove_hidden_states(examination, translator.encoder, sequences, states, rubbish)
        del translator  # the next graph holds the same weights once more
        attention = open_session(directory, manifest, f"{provider}/attention.onnx")
        read = [[model.config.special_tokens.bos, *ids[: limit - 1]] for ids in hypotheses]
        prove_translation_attention(examination, attention, model, sequences, read, rubbish)
    elif isinstance(model, TransformerEncoder):
        states = [model.encode(*as_batch(sequence)) for sequence in sequences]
        encoder = open_session(directory, manifest, f"{provider}/encoder.onnx")
        prove_hidden_states(examination, encoder, sequences, states, rubbish)
        if model.config.dense:
            prove_dense(examination, open_session(directory, manifest, f"{provider}/dense.onnx"), model, states)
        attention = open_session(directory, manifest, f"{provider}/attention.onnx")
        prove_classifier_attention(examination, attention, model, sequences, rubbish)
    else:
        assert isinstance(model, TransformerClassifier)
        classifier = Classifier(directory, manifest, provider)
        prove_classification(examination, classifier, model, sequences)
        states = [model.encode(*as_batch(sequence)) for sequence in sequences]
        prove_hidden_states(examination, classifier.session, sequences, states, rubbish)
        attention = open_session(directory, manifest, f"{provider}/attention.onnx")
        prove_classifier_attention(examination, attention, model, sequences, rubbish)


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


def prove_translation(
    examination: Examination,
    translator: Translator,
    model: Transformer,
    sources: list[list[int]],
) -> list[list[int]]:
    """Check encoder outputs, the distribution of every step and free greedy search; return its result in PyTorch."""
    expected_memory = [array for source in sources for array in memory_of(model, source)]
    examination.check_close("encoder outputs", padded_memory(translator, sources), expected_memory)

    limit = min(MAX_TARGET_TOKENS, translator.manifest.limits.max_target_tokens)
    hypotheses, distributions = greedy_alone(model, sources, limit)
    targets = [ids[: limit - 1] for ids in hypotheses]
    known = model.is_target_token.numpy()
    expected = [x[:, known] for x in distributions]
    del distributions
    n_known = int(known.sum())
    forced = forced_distributions(translator, sources, targets, n_known)
    examination.check_zero("probabilities of tokens that no target has", [np.exp(x[:, ~known]) for x in forced])
    actual = [x[:, known] for x in forced]
    examination.check_close("decoder steps", [centred(x) for x in actual], [centred(x) for x in expected])
    examination.check_agreement("most probable tokens", best_ids(actual), best_ids(expected))
    prove_few_candidates(examination, translator, sources, targets, forced)
    del forced, actual
    in_beams = forced_distributions(translator, sources, targets, n_known, ROWS_OF_A_SOURCE)
    examination.check_close(
        "decoder steps in beams", [centred(x[:, known]) for x in in_beams], [centred(x) for x in expected]
    )

    together = translator.greedy(sources, limit, admit_per_step=1)
    alone = [translator.greedy([source], limit)[0] for source in sources]
    examination.check_equal("translations together and alone", [h.ids for h in together], [h.ids for h in alone])
    examination.check_agreement("translations of ONNX Runtime and PyTorch", [h.ids for h in together], hypotheses)
    return hypotheses


def greedy_alone(model: Transformer, sources: list[list[int]], limit: int) -> tuple[list[list[int]], list[Array]]:
    """Translate each source alone and without a cache in PyTorch; return the targets and their distributions.

    A search with a cache guesses all targets at once. A guess is what greedy search finds if each of its tokens is the
    most probable one after those before it; one pass checks all its tokens.
    """
    tokens = model.config.special_tokens
    ids, lengths = map(torch.from_numpy, pad(sources, tokens.pad))
    guesses = greedy_search(model, ids, lengths, limit)
    hypotheses, distributions = [], []
    for source, guess in zip(sources, guesses, strict=True):
        found, distribution = guess.ids, distributions_of(model, source, guess.ids[: limit - 1])
        allowed = distribution.copy()
        if (listed := model.shortlists(*as_batch(source))) is not None:
            allowed[:, ~listed[0].numpy()] = -np.inf
        allowed[0, tokens.eos] = -np.inf
        if best_ids([allowed]) != [*found, *[tokens.eos] * guess.finished]:
            found = greedy_search_uncached(model, *as_batch(source), limit)[0].ids
            distribution = distributions_of(model, source, found[: limit - 1])
        hypotheses.append(found)
        distributions.append(distribution)
    return hypotheses, distributions


def prove_few_candidates(
    examination: Examination,
    translator: Translator,
    sources: list[list[int]],
    targets: list[list[int]],
    forced: list[Array],
) -> None:
    """Check that few candidates are, bit for bit, the best of the `forced` distributions, in any order of equals."""
    few, best_of_all = [], []
    for step, rows in enumerate(forced_rows(translator, sources, targets, 1)):
        for k in CANDIDATE_COUNTS:
            rows.ask_for(k)
            token_ids, log_probs = rows.step()
            for row, position in positions_at(step, targets).items():
                of_all = forced[row][position]
                few += [log_probs[row].tolist(), of_all[token_ids[row]].tolist()]
                best_of_all += [np.sort(np.partition(of_all, -k)[-k:])[::-1].tolist()] * 2
    examination.check_equal("few candidates and the best of all", few, best_of_all)


def prove_classification(
    examination: Examination, classifier: Classifier, model: TransformerClassifier, sequences: list[list[int]]
) -> None:
    """Check the logits of sequences, and of tokens if these are pooled."""
    expected = [[t[0].numpy() for t in model(*as_batch(sequence))] for sequence in sequences]
    ids, lengths = pad(sequences, padding=classifier.manifest.dimensions.vocab_size - 1)
    logits, token_logits = classifier.run(ids, lengths)
    examination.check_close("logits", list(logits), [e[0] for e in expected])
    if token_logits is not None:
        actual = [token_logits[row, :length] for row, length in enumerate(lengths)]
        examination.check_close("token logits", actual, [e[1] for e in expected])
        examination.check_zero(
            "token logits in padding", [token_logits[row, length:] for row, length in enumerate(lengths)]
        )
    alone = [classifier.classify([sequence])[0].logits for sequence in sequences]
    examination.check_equal("labels together and alone", best_ids([logits]), best_ids([np.stack(alone)]))
    examination.check_agreement(
        "labels of ONNX Runtime and PyTorch",
        best_ids([logits]),
        best_ids([np.stack([e[0] for e in expected])]),
    )


def prove_hidden_states(
    examination: Examination,
    session: ort.InferenceSession,
    sequences: Sequence[list[int]],
    expected: Sequence[torch.Tensor],
    padding: int,
) -> None:
    """Check the encoder states of each token; `expected` are those of PyTorch, (1, S, E), for each sequence alone."""

    def states(together: Sequence[list[int]]) -> list[Array]:
        ids, lengths = pad(together, padding, MIN_TOKENS)
        names = [value.name for value in session.get_inputs()]
        (found,) = session.run([LAST_HIDDEN_STATE], dict(zip(names, (ids, lengths), strict=True)))
        return [row[:length] for row, length in zip(found, lengths, strict=True)]

    actual = states(sequences)
    examination.check_close("hidden states", actual, [tensor[0].numpy() for tensor in expected])
    differences = [np.abs(a - states([s])[0]).max() for a, s in zip(actual, sequences, strict=True)]
    examination.check_within("hidden states: together and alone differ by", float(max(differences)), ALONE_TOLERANCE)


def prove_dense(
    examination: Examination, session: ort.InferenceSession, model: TransformerEncoder, states: list[torch.Tensor]
) -> None:
    """Check the dense layers over pooled states, all together and each beside a row of zeros."""
    pooled = torch.cat([torch.cat([rows.mean(dim=1)] * len(model.config.pooling), dim=1) for rows in states])
    (together,) = session.run(None, {"pooled": pooled.numpy()})
    examination.check_close("dense layers", [together], [model.project(pooled).numpy()])
    alone = [session.run(None, {"pooled": np.stack([row, np.zeros_like(row)])})[0][0] for row in pooled.numpy()]
    examination.check_equal("dense layers together and alone", together.tolist(), [row.tolist() for row in alone])


def as_batch(sequence: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a batch of one sequence: ids (1, S) and lengths (1)."""
    return torch.tensor([sequence]), torch.tensor([len(sequence)])


def memory_of(model: Transformer, source: list[int]) -> list[Array]:
    """Return PyTorch's key and value of each decoder layer in turn, each (S, E)."""
    ids, _ = as_batch(source)
    memory = model.encode(ids, torch.ones_like(ids, dtype=torch.bool))
    attentions = [layer.cross_attention for layer in model.decoder.decoder_layers()]
    return [
        attention.merge_heads(heads)[0].numpy()
        for attention in attentions
        for heads in attention.project_memory(memory, memory)
    ]


def padded_memory(translator: Translator, sources: list[list[int]]) -> list[Array]:
    """Return ONNX Runtime's keys and values from one padded batch, with the vocabulary's last word as padding."""
    ids, lengths = pad(sources, padding=translator.manifest.dimensions.vocab_size - 1)
    present = translator.encoder.run(translator.memory_names, {"input_ids": ids, "source_lengths": lengths})
    return [array[row, :length] for row, length in enumerate(lengths) for array in present]


def distributions_of(model: Transformer, source: list[int], target: list[int]) -> Array:
    """Return PyTorch's log-probabilities (T, V) of the tokens after each prefix of a target, in one pass."""
    ids, _ = as_batch(source)
    mask = torch.ones_like(ids, dtype=torch.bool)
    hidden = model.decode(torch.tensor([[model.config.special_tokens.bos, *target]]), model.encode(ids, mask), mask)
    distributions: Array = model.logits(hidden)[0].log_softmax(dim=-1).numpy()
    return distributions


def forced_distributions(
    translator: Translator, sources: list[list[int]], targets: list[list[int]], n_known: int, rows_of_a_source: int = 1
) -> list[Array]:
    """Return ONNX Runtime's log-probabilities, step by step; n_known tokens can be produced."""
    size = translator.manifest.dimensions.target_vocab_size
    distributions = [np.full((len(target) + 1, size), -np.inf, np.float32) for target in targets]
    for step, rows in enumerate(forced_rows(translator, sources, targets, rows_of_a_source)):
        rows.ask_for(n_known)
        token_ids, log_probs = rows.step()
        for row, position in positions_at(step, targets).items():
            distributions[row][position, token_ids[row]] = log_probs[row]
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
    for step in range(R + max(map(len, targets))):
        for row, position in positions_at(step, targets).items():
            if position == 0:
                rows.admit(row, translator.manifest.special_tokens.bos, memories[row])
            else:
                rows.advance(row, targets[row][position - 1])
        yield rows


def positions_at(step: int, targets: list[list[int]]) -> dict[int, int]:
    """Return the position of each row that is reading a target."""
    return {row: step - row for row, target in enumerate(targets) if 0 <= step - row <= len(target)}


def centred(distributions: Array) -> Array:
    """Subtract the mean from log-probabilities: logits again, whatever the mean of the logits was."""
    means: Array = distributions.mean(axis=-1, keepdims=True)
    return distributions - means


def best_ids(distributions: Sequence[Array]) -> list[int]:
    """Return the most probable index of every row of every array."""
    return [int(i) for rows in distributions for i in rows.argmax(axis=-1)]
