"""Small MarianMT models in Hugging Face's layout, with random weights and everything that published ones have."""

import json
import warnings
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer, PreTrainedModel

from tests.model.importing.sentencepieces import sentencepiece_model

ENGLISH = """The harbour was quiet when the first boats came back with their nets full of fish.
She keeps three old clocks in the kitchen, and none of them tells the right time.
Nobody had told the new teacher that the bell rings twice on Fridays.
If it rains tomorrow, we will stay at home and repair the garden fence.
My brother wrote a letter to the newspaper about the broken bridge.
The museum opens at nine and closes at half past five in winter.
A small dog ran across the street and stopped in front of the bakery.
They planted seven apple trees behind the house last spring.
Can you tell me where the nearest post office is, please?
The train to the north was late again because of the heavy snow.
We counted 1,250 birds on the lake; most of them were geese.
He put the keys on the table, took his coat and left without a word.""".splitlines()
FRENCH = """Le port était calme quand les premiers bateaux sont revenus, leurs filets pleins de poissons.
Elle garde trois vieilles horloges dans la cuisine, et aucune ne donne la bonne heure.
Personne n'avait dit au nouveau professeur que la cloche sonne deux fois le vendredi.
S'il pleut demain, nous resterons à la maison pour réparer la clôture du jardin.
Mon frère a écrit une lettre au journal à propos du pont cassé.
Le musée ouvre à neuf heures et ferme à cinq heures et demie en hiver.
Un petit chien a traversé la rue et s'est arrêté devant la boulangerie.
Ils ont planté sept pommiers derrière la maison au printemps dernier.
Pouvez-vous me dire où se trouve le bureau de poste le plus proche ?
Le train pour le nord était encore en retard à cause de la neige.
Nous avons compté 1 250 oiseaux sur le lac ; la plupart étaient des oies.
Il a posé les clés sur la table, a pris son manteau et est parti sans un mot.""".splitlines()
"""Sentences that we wrote."""


def train_sentencepiece(path: Path, texts: list[str], vocab_size: int = 180, model_type: str = "unigram") -> list[str]:
    """Write a SentencePiece model; return its pieces in order."""
    options = {"model_type": model_type, "normalization_rule_name": "nmt_nfkc"}
    path.write_bytes(sentencepiece_model(texts * 20, vocab_size, **options))
    loaded = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [loaded.id_to_piece(i) for i in range(loaded.get_piece_size())]


def write_marian(
    directory: Path,
    *,
    targets: tuple[str, ...] = (),
    separate: bool = False,
    tied: bool = True,
    steps: int = 0,
    **changes: Any,
) -> MarianMTModel:
    """Write a model and its tokenizer.

    Args:
        targets: languages that it writes, each with a token.
        separate: whether source and target have separate vocabularies.
        steps: training steps on the sentences above, so that translations end and differ.
        changes: changes of its MarianConfig.
    """
    directory.mkdir(parents=True, exist_ok=True)
    source = train_sentencepiece(directory / "source.spm", ENGLISH)
    target = train_sentencepiece(directory / "target.spm", FRENCH)
    codes = [f">>{code}<<" for code in targets]

    def numbered(pieces: list[str]) -> dict[str, int]:
        named = dict.fromkeys(piece for piece in pieces if piece not in ("<s>", "</s>", "<unk>"))
        return {piece: i for i, piece in enumerate(["</s>", "<unk>", *named, *codes])}

    if separate:
        vocabularies = {"vocab.json": numbered(source), "target_vocab.json": numbered(target)}
    else:
        vocabularies = {"vocab.json": numbered(source + target)}
    size = max(map(len, vocabularies.values())) + 1
    for name, vocabulary in vocabularies.items():
        while len(vocabulary) < size - 1:
            vocabulary[f"<made-up-{len(vocabulary)}>"] = len(vocabulary)
        vocabulary["<pad>"] = size - 1
        (directory / name).write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    config = MarianConfig(
        **{
            "vocab_size": size,
            "decoder_vocab_size": size,
            "d_model": 48,
            "encoder_layers": 3,
            "decoder_layers": 2,
            "encoder_attention_heads": 3,
            "decoder_attention_heads": 3,
            "encoder_ffn_dim": 80,
            "decoder_ffn_dim": 80,
            "activation_function": "swish",
            "scale_embedding": True,
            "max_position_embeddings": 96,
            "pad_token_id": size - 1,
            "eos_token_id": 0,
            "bos_token_id": 0,
            "decoder_start_token_id": size - 1,
            "forced_eos_token_id": 0,
            "share_encoder_decoder_embeddings": not separate,
            "tie_word_embeddings": tied,
            **changes,
        }
    )
    torch.manual_seed(7)
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "layer_norm" not in name and "positions" not in name:
                parameter.normal_(std=0.1 if steps else 0.25)
        model.final_logits_bias.normal_(std=0.5)
        model.final_logits_bias[0, 0] += 2.5  # so that translations end
        model.final_logits_bias[0, size - 1] = 0
        of_targets = list(vocabularies.values())[-1]
        never = [i for piece, i in of_targets.items() if piece not in {"</s>", "<unk>", *target}]
        model.final_logits_bias[0, never] = -20.0  # as training makes pieces that no target has
    model.generation_config = GenerationConfig(
        num_beams=4,
        max_length=64,
        bad_words_ids=[[size - 1]],
        renormalize_logits=True,
        decoder_start_token_id=size - 1,
        pad_token_id=size - 1,
        eos_token_id=0,
        forced_eos_token_id=0,
    )
    written = {"source_lang": "en", "separate_vocabs": separate} | ({} if targets else {"target_lang": "fr"})
    (directory / "tokenizer_config.json").write_text(json.dumps(written))
    config.save_pretrained(directory)
    train(model, tokenizer_of(directory), [(codes[0] if codes else "") + text for text in ENGLISH], steps)
    with torch.no_grad():
        for embedding in {model.get_encoder().embed_tokens, model.get_decoder().embed_tokens}:
            embedding.weight[size - 1] = 0
    model.save_pretrained(directory)
    return model


def train(model: PreTrainedModel, tokenizer: Any, sources: list[str], steps: int) -> None:
    batch = tokenizer(sources, text_target=FRENCH, return_tensors="pt", padding=True)
    batch["labels"][batch["labels"] == tokenizer.pad_token_id] = -100
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()


def tokenizer_of(directory: Path) -> MarianTokenizer:
    """Load the tokenizer of a directory written above with transformers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a package that it does not use here
        return MarianTokenizer.from_pretrained(directory)
