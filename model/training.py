"""Training with Lightning: `train` reads config, data, fit, average, save."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any, cast

import lightning
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, LearningRateMonitor, ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader

from model.attention import MultiHeadAttention
from model.batching import (
    BatchStream,
    ReviewBatch,
    TranslationBatch,
    batches_by_length,
    collate_reviews,
    collate_translations,
)
from model.checkpoint import TOKENIZER, TRAINING, average_weights, build_model, save_checkpoint
from model.config import ClassifierConfig, Config
from model.examples import TrainingData, prepare
from model.loss import linear_cross_entropy
from model.optimizer import build_optimizer
from model.schedule import learning_rate_factor
from model.tokenizer import PAD_ID, load_tokenizer
from model.transformer import Transformer, TransformerClassifier

Batch = TranslationBatch | ReviewBatch


def train(config: Config, data_dir: Path | None, run_dir: Path, checkpoint_dir: Path) -> None:
    """Train to `max_steps`, resuming from the last checkpoint in `run_dir` if there is one, and write `checkpoint_dir`.

    Raises:
        DataError: a corpus is missing, empty or malformed.
    """
    lightning.seed_everything(config.training.seed, workers=True)
    run_dir.mkdir(parents=True, exist_ok=True)
    tokenizer_path = run_dir / TOKENIZER
    known = load_tokenizer(tokenizer_path) if tokenizer_path.is_file() else None
    data, tokenizer = prepare(config, data_dir, known)
    tokenizer.save(str(tokenizer_path))

    module = TrainingModule(config, data)
    every = config.training.checkpoint_every_steps
    checkpoints = ModelCheckpoint(
        run_dir / "steps",
        filename="{step:07d}",
        monitor="step",
        mode="max",
        save_top_k=config.training.average_checkpoints,
        save_last=True,
        every_n_train_steps=every,
        enable_version_counter=False,
    )
    trainer = lightning.Trainer(
        max_steps=config.training.max_steps,
        precision=config.training.precision,
        val_check_interval=every,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        log_every_n_steps=20,
        logger=TensorBoardLogger(str(run_dir), name="", version=""),
        callbacks=[checkpoints, LearningRateMonitor("step"), RichProgressBar(refresh_rate=20), Clock()],
        use_distributed_sampler=False,
    )
    last = run_dir / "steps" / "last.ckpt"
    trainer.fit(module, ckpt_path=last if last.is_file() else None, weights_only=False)
    finish(config, tokenizer, run_dir, checkpoint_dir)


def finish(config: Config, tokenizer: Tokenizer, run_dir: Path, checkpoint_dir: Path) -> None:
    """Average the last checkpoints of a run into a checkpoint directory."""
    steps = sorted((run_dir / "steps").glob("step=*.ckpt"))[-config.training.average_checkpoints :]
    save_checkpoint(checkpoint_dir, config, average_weights(steps, "model."), tokenizer)
    last = torch.load(steps[-1], map_location="cpu", weights_only=False)
    facts = {
        "steps": last["global_step"],
        "tokens": last["tokens"],
        "hours": round(last["seconds"] / 3600, 2),
        "averaged_checkpoints": len(steps),
        "threads": torch.get_num_threads(),
    }
    (checkpoint_dir / TRAINING).write_text(json.dumps(facts, indent=2) + "\n")


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
        self.tokens += _size(batch)
        pl_module.log("tokens_per_second", self.tokens / self.seconds, batch_size=1)

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        checkpoint["seconds"], checkpoint["tokens"] = self.seconds, self.tokens

    def on_load_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.seconds, self.tokens = checkpoint["seconds"], checkpoint["tokens"]


def _size(batch: Batch) -> int:
    if isinstance(batch, TranslationBatch):
        return batch.source.numel() + batch.target_input.numel()
    return batch.ids.numel()


class TrainingModule(lightning.LightningModule):
    """One optimization step of either model."""

    def __init__(self, config: Config, data: TrainingData) -> None:
        super().__init__()
        self.config = config
        self.data = data
        self.model = build_model(config)
        for module in self.model.modules():
            if isinstance(module, MultiHeadAttention):
                module.fused = config.training.fused_attention

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = self._loss(batch, self.config.training.label_smoothing)
        self.log("train_loss", loss.detach(), prog_bar=True, batch_size=1)
        return loss

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        size = int((batch.target_output != PAD_ID).sum()) if isinstance(batch, TranslationBatch) else len(batch.labels)
        self.log("validation_loss", self._loss(batch, label_smoothing=0.0), batch_size=size, prog_bar=True)
        if isinstance(batch, ReviewBatch):
            accuracy = (self.model(batch.ids, batch.lengths)[0].argmax(dim=-1) == batch.labels).float().mean()
            self.log("validation_accuracy", accuracy, batch_size=size, prog_bar=True)

    def on_validation_epoch_end(self) -> None:
        metrics = {name: round(float(value), 4) for name, value in self.trainer.callback_metrics.items()}
        print(f"step {self.global_step}: {metrics}", flush=True)

    def _loss(self, batch: Batch, label_smoothing: float) -> Tensor:
        if isinstance(batch, TranslationBatch):
            assert isinstance(self.model, Transformer)
            hidden = self.model(batch.source, batch.source_lengths, batch.target_input)
            real = batch.target_output != PAD_ID
            weight = self.model.embedding.tokens.weight
            return linear_cross_entropy(hidden[real], weight, batch.target_output[real], label_smoothing)
        assert isinstance(self.model, TransformerClassifier)
        logits, _ = self.model(batch.ids, batch.lengths)
        return F.cross_entropy(logits.float(), batch.labels, label_smoothing=label_smoothing)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Here rather than by the trainer, which refuses to clip for PyTorch's fused AdamW.
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.training.clip_norm)
        self.log("gradient_norm", norm, batch_size=1)

    def configure_optimizers(self) -> Any:
        training = self.config.training
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
        training = self.config.training
        steps_done = self.global_step
        collate: Any = collate_translations
        if isinstance(self.config.model, ClassifierConfig):
            generator = torch.Generator().manual_seed(training.seed + steps_done)
            collate = partial(collate_reviews, token_dropout=training.token_dropout, generator=generator)
        remaining = training.max_steps - steps_done
        stream = BatchStream(self.data.pools, collate, training.batch_tokens, training.seed, steps_done, remaining)
        return DataLoader(stream, batch_size=None)

    def val_dataloader(self) -> Any:
        examples = self.data.validation
        collate: Any = collate_reviews if isinstance(self.config.model, ClassifierConfig) else collate_translations
        lengths = torch.tensor([len(example) for example in examples]).numpy()
        batches = [collate([examples[i] for i in batch]) for batch in batches_by_length(lengths, 4096)]
        return DataLoader(cast(Any, batches), batch_size=None)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return type(batch)(**{name: tensor.to(device) for name, tensor in vars(batch).items()})
