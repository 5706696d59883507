"""One translator for several target languages, beside one for each, of the same shape: docs/multilingual.md."""

from pathlib import Path

from rich.console import Console

from benchmarks.page import fill, machine_table, markdown, measured, printed
from benchmarks.results import Record, command, load, machine, save
from benchmarks.tables import Rows
from benchmarks.trained import quick_config, train_and_evaluate
from benchmarks.workspace import ROOT, workspace
from model.checkpoint import load_checkpoint, load_training
from model.config import Config, load_config
from model.data import load_rows

TEMPLATE = Path(__file__).parent / "multilingual.md"
CONFIG = ROOT / "model" / "configs" / "translate-en-mul.yaml"
PART = "multilingual"


def separate(joint: Config) -> list[Config]:
    """For each target language a model of its corpora alone, without the prefix, for its share of the steps."""
    prefixes = list(dict.fromkeys(source.prefix for source in joint.data.train))
    configs = []
    for prefix in prefixes:
        content, target = joint.model_dump(), prefix.strip().lower()
        content["name"] = f"translate-{content['model']['source']}-{target}"
        content["description"] = f"Beside {joint.name}: one of its languages alone."
        content["model"]["target"] = target
        for use in ("train", "test"):
            own = [source for source in content["data"][use] if source["prefix"] == prefix]
            content["data"][use] = [source | {"prefix": ""} for source in own]
        for steps in ("max_steps", "decay_steps"):
            content["training"][steps] //= len(prefixes)
        configs.append(Config.model_validate(content))
    return configs


def measure(data: Path, quick: bool, console: Console) -> None:
    """Train and score the models, those that were trained before only where their configuration has changed."""
    joint = load_config(CONFIG)
    for config in (*separate(joint), joint):
        chosen = quick_config(config) if quick else config
        directory = workspace(PART, "quick" if quick else "full", config.name)
        path = train_and_evaluate(chosen, directory, data, console)
        checkpoint, training = load_checkpoint(path), load_training(path)
        references = [row.right for source in chosen.data.test for row in load_rows(source, data)]
        record = {
            "model": config.name,
            "joint": config is joint,
            "parameters": sum(parameter.numel() for parameter in checkpoint.model.parameters()),
            "sentences": len(references),
            "target_tokens": sum(map(len, checkpoint.tokenizer.encode_batch(references))),
            "scores": {name: scores["bleu"] for name, scores in checkpoint.evaluation.items() if "bleu" in scores},
            **{name: training[name] for name in ("steps", "tokens")},
            "command": command(),
        }
        console.print(f"{config.name}: {record['scores']}")
        save(PART, ["model"], [record], quick)


def write(quick: bool, console: Console) -> Path:
    """Print the table, and write the page; a quick one stays in the workspace. Returns its path."""
    path = workspace("quick") / "multilingual.md" if quick else ROOT / "docs" / "multilingual.md"
    records = load(PART, quick)
    rows = rows_of(records)
    console.print(printed(PART, rows))
    described = machine_table(machine(PART, quick))
    fill(TEMPLATE, {"table": measured(markdown(rows), records), "machine": described}, path)
    return path


def rows_of(records: list[Record]) -> Rows:
    """The models for one language each as one row, and the model for all as another."""
    alone = [record for record in records if not record["joint"]]
    tests = [test for record in alone for test in record["scores"]]
    directions = [f"BLEU {test.rsplit('.', 1)[-1]}" for test in tests]
    rows = [["models", "parameters", "steps", "million padded tokens", "target tokens a sentence", *directions]]
    joint = [record for record in records if record["joint"]]
    for name, together in (("one for each language", alone), ("one for all", joint)):
        scores = {test: score for record in together for test, score in record["scores"].items()}
        total = {
            field: sum(record[field] for record in together)
            for field in ("parameters", "steps", "tokens", "target_tokens", "sentences")
        }
        budget = [f"{total['parameters'] / 1e6:.2f} M", f"{total['steps']:,}", f"{total['tokens'] / 1e6:.1f}"]
        length = f"{total['target_tokens'] / total['sentences']:.1f}"
        rows.append([name, *budget, length, *(f"{scores[test]:.1f}" for test in tests)])
    return rows
