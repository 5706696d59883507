"""Training with Lightning: `train` reads config, data, pre-training where there is one, fit, average, save."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import lightning
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader

from model.attention import MultiHeadAttention
from model.batching import (
    Batch,
    BatchStream,
    Ids,
    MaskedBatch,
    Pool,
    ReviewBatch,
    ReviewExample,
    TextBatch,
    TranslationBatch,
    batches_by_length,
    collate_masked,
    collate_reviews,
    collate_texts,
    collate_translations,
    pad,
)
from model.calibration import calibrate
from model.checkpoint import (
    TOKENIZER,
    TRAINING,
    Model,
    average_weights,
    build_model,
    save_checkpoint,
    start_with,
)
from model.config import Config, LanguageModelConfig, NGramTrainingConfig, PretrainingConfig, TrainingConfig
from model.examples import TrainingData, prepare, prepare_pretraining, prepare_unlabelled
from model.language_model import LanguageModel
from model.loss import linear_cross_entropy
from model.ngrams import NGramClassifier, NGramLogits
from model.optimizer import build_optimizer
from model.schedule import learning_rate_factor
from model.tokenizer import PAD_ID, load_tokenizer
from model.transformer import TransformerClassifier
from model.translator import TranslationModel

VALIDATION_TOKENS = 4096
SELF_LABELLING_TOKENS = 65_536

Trainable = Model | NGramClassifier


@dataclass(frozen=True)
class Stage:
    """One optimization: what is trained on, how it becomes batches, and for how long."""

    training: TrainingConfig
    data: TrainingData
    collate: Callable[..., Batch]
    """(examples, generator=...) to a training batch."""
    collate_validation: Callable[..., Batch]


def train(
    config: Config,
    data_dir: Path | None,
    run_dir: Path,
    checkpoint_dir: Path,
    start: Path | None = None,
    new_vocabulary: bool = False,
) -> None:
    """Train to `max_steps`, resuming from the last checkpoint in `run_dir` if there is one, and write `checkpoint_dir`.

    Args:
        start: a checkpoint whose weights and tokenizer the first step begins with; None begins with random ones.
        new_vocabulary: learn a tokenizer from the corpora even so, as other languages need it.

    Raises:
        DataError: a corpus is missing, empty or malformed.
        CheckpointError: `start` is no checkpoint, or its model has other dimensions.
    """
    lightning.seed_everything(config.training.seed, workers=True)
    run_dir.mkdir(parents=True, exist_ok=True)
    tokenizer_path = run_dir / TOKENIZER
    learnt = tokenizer_path if start is None or new_vocabulary else start / TOKENIZER
    known = load_tokenizer(learnt) if learnt.is_file() else None
    data, tokenizer = prepare(config, data_dir, known)
    tokenizer.save(str(tokenizer_path))

    model = build_model(config)
    if start is not None:
        start_with(model, start, tokenizer)
    if isinstance(model, TransformerClassifier):
        n_grams, model.n_grams = model.n_grams, None
        if config.pretraining is not None:
            stage = _pretraining_stage(config, config.pretraining, data_dir, tokenizer)
            _optimize(model, stage, run_dir / "pretraining")
        _optimize(model, _review_stage(config.training, data), run_dir)
        if n_grams is not None and config.n_gram_training is not None:
            texts = prepare_unlabelled(config, config.n_gram_training.unlabelled, data_dir, tokenizer)
            train_n_grams(n_grams, config.n_gram_training, data, texts, run_dir / "n_grams")
        model.n_grams = n_grams
        factors = calibrate(model, [cast(ReviewExample, review) for review in data.validation])
        print("calibrated by", *(f"{factor:.3f}" for factor in factors), flush=True)
    else:
        _optimize(model, _stage(config, data), run_dir)
    save_checkpoint(checkpoint_dir, config, model.state_dict(), tokenizer)
    (checkpoint_dir / TRAINING).write_text(json.dumps(_facts(config, run_dir, start), indent=2) + "\n")


def train_n_grams(
    n_grams: NGramLogits, config: NGramTrainingConfig, data: TrainingData, unlabelled: Sequence[Ids], run_dir: Path
) -> None:
    """Train n-grams as if there were no encoder, and where there are texts without labels once more, on theirs too."""
    # Pieces of reviews teach an encoder what a sentence is worth; of words they say nothing new.
    whole = [pool for pool in data.pools if pool.shortest_crop is None]

    def fit(pools: list[Pool], name: str) -> None:
        reviews = [cast(ReviewExample, review) for pool in pools for review in pool.examples]
        n_grams.count([review.ids for review in reviews], [review.label for review in reviews])
        stage = _review_stage(config.training, TrainingData(pools, data.validation))
        _optimize(NGramClassifier(n_grams), stage, run_dir / name)
        n_grams.fold()

    fit(whole, "labelled")
    if unlabelled:
        fit([*whole, Pool(sure_labels(n_grams, unlabelled, config.least_margin))], "self-labelled")


@torch.inference_mode()
def sure_labels(n_grams: NGramLogits, texts: Sequence[Ids], least_margin: float) -> list[ReviewExample]:
    """The texts with the labels that n-grams give them, where the best is so much better than the next."""
    examples: list[ReviewExample] = []
    for batch in batches_by_length(np.array([len(text) for text in texts], dtype=np.int64), SELF_LABELLING_TOKENS):
        ids, lengths = pad([texts[i] for i in batch])
        (best, second), (labels, _) = (pair.T for pair in n_grams.pooled(ids, lengths).topk(2, dim=-1))
        sure = (best - second >= least_margin).tolist()
        chosen = zip(batch, labels.tolist(), sure, strict=True)
        examples += [ReviewExample(texts[i], label) for i, label, is_sure in chosen if is_sure]
    return examples


def _review_stage(training: TrainingConfig, data: TrainingData) -> Stage:
    return Stage(training, data, partial(collate_reviews, token_dropout=training.token_dropout), collate_reviews)


def _stage(config: Config, data: TrainingData) -> Stage:
    collate = collate_texts if isinstance(config.model, LanguageModelConfig) else collate_translations
    return Stage(config.training, data, collate, collate)


def _pretraining_stage(
    config: Config, pretraining: PretrainingConfig, data_dir: Path | None, tokenizer: Tokenizer
) -> Stage:
    data = prepare_pretraining(config, pretraining, data_dir, tokenizer)
    masking = partial(collate_masked, masked=pretraining.masked)
    fixed = partial(masking, generator=torch.Generator().manual_seed(pretraining.training.seed))
    return Stage(pretraining.training, data, masking, fixed)


def _optimize(model: Trainable, stage: Stage, run_dir: Path) -> None:
    """Run one stage to its end, from its last checkpoint if it was begun before, and average the model's weights."""
    every = stage.training.checkpoint_every_steps
    steps_dir = run_dir / "steps"
    checkpoints = ModelCheckpoint(
        steps_dir,
        filename="{step:07d}",
        monitor="step",
        mode="max",
        save_top_k=stage.training.average_checkpoints,
        save_last=True,
        every_n_train_steps=every,
        enable_version_counter=False,
    )
    trainer = lightning.Trainer(
        max_steps=stage.training.max_steps,
        precision=stage.training.precision,
        val_check_interval=every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        log_every_n_steps=20,
        logger=TensorBoardLogger(str(run_dir), name="", version=""),
        callbacks=[checkpoints, LearningRateMonitor("step"), RichProgressBar(refresh_rate=20), Clock()],
        use_distributed_sampler=False,
    )
    last = steps_dir / "last.ckpt"
    trainer.fit(TrainingModule(model, stage), ckpt_path=last if last.is_file() else None, weights_only=False)
    model.load_state_dict(average_weights(_last_steps(run_dir, stage.training), "model."))


def _last_steps(run_dir: Path, training: TrainingConfig) -> list[Path]:
    return sorted((run_dir / "steps").glob("step=*.ckpt"))[-training.average_checkpoints :]


def _facts(config: Config, run_dir: Path, start: Path | None) -> dict[str, float]:
    """What the model card tells of a run, and of what it began with."""
    before = json.loads((start / TRAINING).read_text(encoding="utf-8")) if start is not None else {}
    run_dirs = [run_dir]
    if config.pretraining is not None:
        run_dirs.append(run_dir / "pretraining")
    run_dirs += sorted(path for path in run_dir.glob("n_grams/*") if path.is_dir())
    runs = [torch.load(run / "steps" / "last.ckpt", map_location="cpu", weights_only=False) for run in run_dirs]
    return {
        "runs": before.get("runs", 0) + 1,
        "steps": before.get("steps", 0) + sum(run["global_step"] for run in runs),
        "tokens": before.get("tokens", 0) + sum(run["tokens"] for run in runs),
        "hours": round(before.get("hours", 0) + sum(run["seconds"] for run in runs) / 3600, 2),
        "averaged_checkpoints": config.training.average_checkpoints,
        "threads": torch.get_num_threads(),
    }


class Clock(Callback):
    """Counts training seconds and padded tokens across resumed runs, for the model card."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tokens = 0
        self._started = 0.0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._started = time.monotonic() - self.seconds

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Batch, batch_idx: int) -> None:
        self.seconds = time.monotonic() - self._started
        self.tokens += batch.padded_tokens
        pl_module.log("tokens_per_second", self.tokens / self.seconds, batch_size=1)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint["seconds"], checkpoint["tokens"] = self.seconds, self.tokens

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.seconds, self.tokens = checkpoint["seconds"], checkpoint["tokens"]


class TrainingModule(lightning.LightningModule):
    """One optimization step of any model."""

    def __init__(self, model: Trainable, stage: Stage) -> None:
        super().__init__()
        self.model = model
        self.stage = stage
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                module.fused = stage.training.fused_attention

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = self.loss(batch, self.stage.training.label_smoothing)
        self.log("train_loss", loss.detach(), prog_bar=True, batch_size=1)
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        size = batch.n_predictions
        self.log("validation_loss", self.loss(batch, label_smoothing=0.0), batch_size=size, prog_bar=True)
        if isinstance(batch, ReviewBatch):
            accuracy = (self.model(batch.ids, batch.lengths)[0].argmax(dim=-1) == batch.labels).float().mean()
            self.log("validation_accuracy", accuracy, batch_size=size, prog_bar=True)

    def on_validation_epoch_end(self) -> None:
        metrics = {name: round(float(value), 4) for name, value in self.trainer.callback_metrics.items()}
        print(f"step {self.global_step}: {metrics}", flush=True)

    def loss(self, batch: Batch, label_smoothing: float) -> Tensor:
        if isinstance(batch, TranslationBatch | TextBatch):
            real = batch.target_output != PAD_ID
            return self._token_loss(self._hidden(batch)[real], batch.target_output[real], label_smoothing)
        if isinstance(batch, MaskedBatch):
            assert isinstance(self.model, TransformerClassifier)
            hidden = self.model.encode(batch.ids, batch.lengths)
            return self._token_loss(hidden[batch.masked], batch.targets[batch.masked], label_smoothing)
        logits, _ = self.model(batch.ids, batch.lengths)
        return F.cross_entropy(logits.float(), batch.labels, label_smoothing=label_smoothing)

    def _hidden(self, batch: TranslationBatch | TextBatch) -> Tensor:
        """What predicts target_output (B, T): (B, T, E)."""
        if isinstance(batch, TranslationBatch):
            assert isinstance(self.model, TranslationModel)
            hidden: Tensor = self.model(batch.source, batch.source_lengths, batch.target_input)
            return hidden
        assert isinstance(self.model, LanguageModel)
        hidden = self.model(batch.target_input)
        return hidden

    def _token_loss(self, hidden: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        assert not isinstance(self.model, NGramClassifier)
        return linear_cross_entropy(hidden, self.model.embedding.tokens.weight, targets, label_smoothing)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Here rather than by the trainer, which refuses to clip for PyTorch's fused AdamW.
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.stage.training.clip_norm)
        self.log("gradient_norm", norm, batch_size=1)

    def configure_optimizers(self) -> Any:
        training = self.stage.training
        optimizer = build_optimizer(self.model, training)
        factor = partial(
            learning_rate_factor,
            warmup_steps=training.warmup_steps,
            decay_steps=training.decay_steps,
            max_steps=training.max_steps,
        )
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def train_dataloader(self) -> Any:
        training, done = self.stage.training, self.global_step
        collate = partial(self.stage.collate, generator=torch.Generator().manual_seed(training.seed + done))
        stream = BatchStream(
            self.stage.data.pools, collate, training.batch_tokens, training.seed, done, training.max_steps - done
        )
        return DataLoader(stream, batch_size=None)

    def val_dataloader(self) -> Any:
        examples = self.stage.data.validation
        lengths = np.array([len(example) for example in examples], dtype=np.int64)
        batches = [
            self.stage.collate_validation([examples[i] for i in batch])
            for batch in batches_by_length(lengths, VALIDATION_TOKENS)
        ]
        return DataLoader(cast(Any, batches), batch_size=None)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return type(batch)(**{name: tensor.to(device) for name, tensor in vars(batch).items()})
