"""Optimization with Lightning: from batches to weights, with checkpoints to resume a run."""

import logging
import sys
import time
from collections.abc import Callable
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
from torch import Tensor
from torch.utils.data import DataLoader

from model.batching import Batch, BatchStream, ReviewBatch, TextBatch, TranslationBatch, batches_by_length
from model.checkpoint import Model, average_weights
from model.networks.attention import MultiHeadAttention
from model.networks.language_model import LanguageModel
from model.networks.transformer import TransformerClassifier
from model.networks.translator import TranslationModel
from model.recipe import TrainingConfig
from model.tokenizer import PAD_ID
from model.training.examples import TrainingData
from model.training.loss import linear_cross_entropy
from model.training.optimizer import build_optimizer
from model.training.precision import usable_precision
from model.training.schedule import learning_rate_factor

VALIDATION_TOKENS = 4096
PROGRESS_S = 30
"""Seconds between lines that tell the progress."""
STEPS, LAST = "steps", "last.ckpt"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Optimization:
    """Data of a training, how it becomes batches, and for how long it runs."""

    training: TrainingConfig
    data: TrainingData
    collate: Callable[..., Batch]
    """Function that makes a batch of examples."""


def optimize(model: Model, optimization: Optimization, run_dir: Path) -> None:
    """Train to the end, from the last checkpoint of the run if there is one, and average the last weights."""
    every = optimization.training.checkpoint_every_steps
    checkpoints = ModelCheckpoint(
        run_dir / STEPS,
        filename="{step:07d}",
        monitor="step",
        mode="max",
        save_top_k=optimization.training.average_checkpoints,
        save_last=True,
        every_n_train_steps=every,
        enable_version_counter=False,
    )
    precision = usable_precision(optimization.training.precision)
    if precision != optimization.training.precision:
        log.warning("bf16 is not faster on this machine: training in float32")
    trainer = lightning.Trainer(
        max_steps=optimization.training.max_steps,
        precision=precision,
        val_check_interval=every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        log_every_n_steps=20,
        logger=TensorBoardLogger(str(run_dir), name="", version=""),
        callbacks=[checkpoints, LearningRateMonitor("step"), Clock(), _progress()],
        enable_progress_bar=sys.stdout.isatty(),
        use_distributed_sampler=False,
    )
    last = run_dir / STEPS / LAST  # written by Lightning; a run resumes from it
    trainer.fit(TrainingModule(model, optimization), ckpt_path=last if last.is_file() else None, weights_only=False)
    last_steps = sorted((run_dir / STEPS).glob("step=*.ckpt"))[-optimization.training.average_checkpoints :]
    model.load_state_dict(average_weights(last_steps, "model."))


def _progress() -> Callback:
    """Return a bar for a terminal; elsewhere a line now and then, which a log shows at once."""
    return RichProgressBar(refresh_rate=20) if sys.stdout.isatty() else ProgressLines()


class ProgressLines(Callback):
    """Prints the step, the loss, the speed and the time that is left."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._begun, self._printed, self._first = time.monotonic(), 0.0, trainer.global_step

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Batch, batch_idx: int) -> None:
        now, step, last = time.monotonic(), trainer.global_step, trainer.max_steps
        if now < self._printed + PROGRESS_S and step < last:
            return
        self._printed = now
        left = (now - self._begun) / (step - self._first) * (last - step)
        metrics = trainer.callback_metrics
        print(
            f"step {step} of {last}: loss {float(metrics['train_loss']):.3f}, "
            f"{float(metrics['tokens_per_second']):,.0f} tokens/s, {left / 60:.0f} minutes left",
            flush=True,
        )


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
    """Training and validation steps of any model."""

    def __init__(self, model: Model, optimization: Optimization) -> None:
        super().__init__()
        self.model = model
        self.optimization = optimization
        for module in model.modules():
            if isinstance(module, MultiHeadAttention):
                module.fused = optimization.training.fused_attention

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = self.loss(batch, self.optimization.training.label_smoothing)
        self.log("train_loss", loss.detach(), prog_bar=True, batch_size=1)
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        size = batch.n_predictions
        self.log("validation_loss", self.loss(batch, label_smoothing=0.0), batch_size=size, prog_bar=True)
        if isinstance(batch, ReviewBatch):
            accuracy = (self._class_logits(batch).argmax(dim=-1) == batch.labels).float().mean()
            self.log("validation_accuracy", accuracy, batch_size=size, prog_bar=True)

    def on_validation_epoch_end(self) -> None:
        metrics = {name: round(float(value), 4) for name, value in self.trainer.callback_metrics.items()}
        print(f"step {self.global_step}: {metrics}", flush=True)

    def loss(self, batch: Batch, label_smoothing: float) -> Tensor:
        if isinstance(batch, TranslationBatch | TextBatch):
            real = batch.target_output != PAD_ID
            return self._token_loss(self._hidden(batch)[real], batch.target_output[real], label_smoothing)
        assert isinstance(batch, ReviewBatch)
        return F.cross_entropy(self._class_logits(batch), batch.labels, label_smoothing=label_smoothing)

    def _class_logits(self, batch: ReviewBatch) -> Tensor:
        assert isinstance(self.model, TransformerClassifier)
        logits: Tensor = self.model(batch.ids, batch.lengths)[0]
        return logits.float()

    def _hidden(self, batch: TranslationBatch | TextBatch) -> Tensor:
        """Return the hidden states (B, T, E) that predict target_output (B, T)."""
        if isinstance(batch, TranslationBatch):
            assert isinstance(self.model, TranslationModel)
            hidden: Tensor = self.model(batch.source, batch.source_lengths, batch.target_input)
            return hidden
        assert isinstance(self.model, LanguageModel)
        hidden = self.model(batch.target_input)
        return hidden

    def _token_loss(self, hidden: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        return linear_cross_entropy(hidden, self.model.embedding.tokens.weight, targets, label_smoothing)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Not by the trainer, which refuses to clip for PyTorch's fused AdamW.
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.optimization.training.clip_norm)
        self.log("gradient_norm", norm, batch_size=1)

    def configure_optimizers(self) -> Any:
        training = self.optimization.training
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
        training, done = self.optimization.training, self.global_step
        of = self.optimization
        stream = BatchStream(
            of.data.pools, of.collate, training.batch_tokens, training.seed, done, training.max_steps - done
        )
        return DataLoader(stream, batch_size=None)

    def val_dataloader(self) -> Any:
        examples = self.optimization.data.validation
        lengths = np.array([len(example) for example in examples], dtype=np.int64)
        batches = [
            self.optimization.collate([examples[i] for i in batch])
            for batch in batches_by_length(lengths, VALIDATION_TOKENS)
        ]
        return DataLoader(cast(Any, batches), batch_size=None)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return type(batch)(**{name: tensor.to(device) for name, tensor in vars(batch).items()})
