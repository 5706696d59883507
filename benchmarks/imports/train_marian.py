"""`python -m benchmarks.imports.train_marian OUT --data DIR`: train a small MarianMT, English to French, briefly.

Random weights show little of an import: rounding grows in them as in no real model. This is transformers' own
MarianMTModel with its own loss and the conventions of opus-mt: two SentencePiece models, one vocabulary of the pieces
of both, </s> 0, <unk> 1 and <pad> last, a nonzero bias of the logits, targets that begin with <pad>. One CPU thread
trains it in 50 minutes. OUT is a complete checkpoint after a few minutes.
"""

import json
import math
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import sentencepiece
import torch
import typer
from torch import Tensor
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from benchmarks.imports.random_marian import EOS_ID, POSITIONS, search_settings
from model.data import Row, read_tsv

CORPORA = ("tatoeba-anki", "tatoeba-challenge-rest", "multi30k", "wmt-newstest-2008-2018")
UNK_ID = 1
MAX_TOKENS = 80
"""Most tokens of a source or target; longer pairs are left out."""
PEAK_RATE, WARM_UP = 1e-3, 0.05
"""Peak learning rate, and the share of time in which it rises; then it falls linearly to 0."""
Pair = tuple[list[int], list[int]]


def main(
    out: Annotated[Path, typer.Argument(help="Checkpoint directory to write.")],
    data: Annotated[Path, typer.Option(help="Directory with translation/train/.")],
    minutes: Annotated[float, typer.Option(help="Minutes of training.")] = 50,
    n_pieces: Annotated[int, typer.Option(help="Pieces of each SentencePiece model.")] = 5000,
    tokens: Annotated[int, typer.Option(help="Most padded target tokens of a batch.")] = 2500,
    seed: int = 20,
) -> None:
    """Train the model and save it every five minutes."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    out.mkdir(parents=True, exist_ok=True)
    rows = [row for name in CORPORA for row in read_tsv(data / f"translation/train/{name}.en-fr.tsv.xz")]
    pairs, vocabulary = _tokenize(rows, out, n_pieces)
    model = _model(vocabulary, Counter(token for _, target in pairs for token in target))
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    typer.echo(f"{len(pairs)} pairs, {len(vocabulary)} tokens, {model.num_parameters() / 1e6:.1f} M parameters")
    start = saved = said = time.monotonic()
    losses: list[float] = []
    for step, (sources, targets) in enumerate(_batches(pairs, tokens, random.Random(seed)), start=1):
        now = time.monotonic()
        done = (now - start) / (60 * minutes)
        if now - saved > 300 or done >= 1:
            _save(model, out)
            saved = now
        if now - said > 60 or done >= 1:
            typer.echo(f"{done * minutes:5.1f} min, step {step}, loss {sum(losses) / len(losses):.3f}")
            said, losses = now, []
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * min(done / WARM_UP, (1 - done) / (1 - WARM_UP))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(**_padded(sources, targets, model.config.pad_token_id)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())


def _tokenize(rows: list[Row], out: Path, n_pieces: int) -> tuple[list[Pair], dict[str, int]]:
    """Return the pairs as ids and the vocabulary; write the tokenizer to `out`."""
    models = []
    for name, texts in (("source", [row.left for row in rows]), ("target", [row.right for row in rows])):
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(texts),
            model_prefix=str(out / name),
            vocab_size=n_pieces,
            model_type="unigram",
            normalization_rule_name="nmt_nfkc",
            character_coverage=1.0,
            num_threads=1,
            minloglevel=2,
        )
        (out / f"{name}.vocab").unlink()
        (out / f"{name}.model").rename(out / f"{name}.spm")
        models.append(sentencepiece.SentencePieceProcessor(str(out / f"{name}.spm")))
    sources, targets = (model.Encode([row[i] for row in rows], out_type=str) for i, model in enumerate(models))
    counts = Counter(piece for pieces in (*sources, *targets) for piece in pieces)
    vocabulary_pieces = {model.IdToPiece(i) for model in models for i in range(3, len(model))}
    pieces = [piece for piece, _ in counts.most_common() if piece in vocabulary_pieces]
    vocabulary = {piece: i for i, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (out / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    MarianTokenizer(
        *(str(out / name) for name in ("source.spm", "target.spm", "vocab.json")),
        source_lang="en",
        target_lang="fr",
        model_max_length=POSITIONS,
    ).save_pretrained(out)
    ids = (
        [[vocabulary.get(piece, UNK_ID) for piece in pieces] + [EOS_ID] for pieces in side]
        for side in (sources, targets)
    )
    return [pair for pair in zip(*ids, strict=True) if max(map(len, pair)) <= MAX_TOKENS], vocabulary


def _model(vocabulary: dict[str, int], counts: Counter[int]) -> MarianMTModel:
    pad = vocabulary["<pad>"]
    config = MarianConfig(
        vocab_size=len(vocabulary),
        d_model=256,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=1024,
        decoder_ffn_dim=1024,
        max_position_embeddings=POSITIONS,
        activation_function="swish",
        scale_embedding=True,
        static_position_embeddings=True,
        share_encoder_decoder_embeddings=True,
        normalize_embedding=False,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=EOS_ID,
        bos_token_id=EOS_ID,
        forced_eos_token_id=EOS_ID,
    )
    config._attn_implementation = "eager"  # twice as fast on a CPU for short sequences
    model = MarianMTModel(config)
    bias = torch.tensor([math.log(counts[token] + 1) for token in range(len(vocabulary))])
    bias -= bias.mean()
    bias[pad] = 0.0
    model.final_logits_bias.copy_(bias)
    model.generation_config = search_settings(pad)
    return model.train()


def _batches(pairs: list[Pair], tokens: int, order: random.Random) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Yield batches for ever, of pairs of similar lengths and at most this many padded tokens per side."""
    while True:
        pairs = sorted(pairs, key=lambda pair: (len(pair[1]) + order.random(), len(pair[0])))
        batches: list[list[Pair]] = []
        longest = 0
        for pair in pairs:
            longest = max(longest, *map(len, pair))
            if not batches or (len(batches[-1]) + 1) * longest > tokens:
                batches.append([])
                longest = max(map(len, pair))
            batches[-1].append(pair)
        order.shuffle(batches)
        for batch in batches:
            yield [source for source, _ in batch], [target for _, target in batch]


def _padded(sources: list[list[int]], targets: list[list[int]], pad: int) -> dict[str, Tensor]:
    def tensor(sequences: list[list[int]], filling: int) -> Tensor:
        longest = max(map(len, sequences))
        return torch.tensor([ids + [filling] * (longest - len(ids)) for ids in sequences])

    input_ids = tensor(sources, pad)
    return {"input_ids": input_ids, "attention_mask": (input_ids != pad).long(), "labels": tensor(targets, -100)}


def _save(model: Any, out: Path) -> None:
    """Replace the files of the checkpoint one by one, so that it can always be read."""
    part = out / "part"
    model.save_pretrained(part)
    for path in part.iterdir():
        path.replace(out / path.name)
    part.rmdir()
    (out / "READY").touch()


if __name__ == "__main__":
    typer.run(main)
