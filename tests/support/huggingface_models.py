"""Small models with random weights, as the Transformers library saves them. Run in the environment of exports:

`python huggingface_models.py FOLDER NAME…` makes one folder for each name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

BODY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
TEXT = {"vocab_size": 100, **BODY}
SEQUENCES = {"vocab_size": 100, "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
SOUND = {"conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3], "vocab_size": 30}
PARTS = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]}

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "text-classes": ("BertForSequenceClassification", "BertConfig", {**TEXT, "num_labels": 3, "pad_token_id": 0}),
    "text-masked": ("BertForMaskedLM", "BertConfig", TEXT),
    "text-spans": ("RobertaForQuestionAnswering", "RobertaConfig", TEXT),
    "image-fixed": ("ViTForImageClassification", "ViTConfig", {**BODY, "image_size": 48, "patch_size": 8}),
    "image-free": (
        "ResNetForImageClassification",
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 3},
    ),
    "image-parts": ("SegformerForSemanticSegmentation", "SegformerConfig", {**PARTS, "decoder_hidden_size": 16}),
    "image-processed": ("Dinov2Model", "Dinov2Config", {**BODY, "image_size": 28, "patch_size": 14}),
    "sound": (
        "Wav2Vec2ForCTC",
        "Wav2Vec2Config",
        {**BODY, **SOUND, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2},
    ),
    "generator": ("GPT2LMHeadModel", "GPT2Config", {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 2}),
    "translator": ("T5ForConditionalGeneration", "T5Config", SEQUENCES),
    "no-exporter": ("FNetModel", "FNetConfig", {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 1}),
    "no-task": ("BertForPreTraining", "BertConfig", TEXT),
}


def main(root: Path, names: list[str]) -> None:
    import torch  # noqa: PLC0415 - names are listed where there is no torch
    import transformers  # noqa: PLC0415

    for name in names:
        model, config, settings = MODELS[name]
        torch.manual_seed(0)
        made = getattr(transformers, model)(getattr(transformers, config)(**settings)).eval()
        made.save_pretrained(root / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
