"""Models that were trained elsewhere, as checkpoints: each family's names, sizes and tokenizers put into ours."""
