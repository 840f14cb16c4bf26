"""The accuracy of a finished model on held-out pictures."""

from pathlib import Path
from typing import Any

from labelsieve.data.sources import open_data
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.measure import accuracies
from labelsieve.runs.model import load_model


def evaluate_model(path: Path, source: str | None, device: str) -> dict[str, Any]:
    """Percent right by each network, by both, and by prototypes, on the test pictures of `source` (default: the run's)."""
    config = RunFolder.open(path).read_config()
    model = load_model(path, choose_device(device))
    source = source or config.data.source
    found = open_data(source)
    if found.test is None:
        raise ToolError(f"{source}: it has no test pictures; name data that have some: `labelsieve evaluate {path} DATA`")
    if found.train.shape != model.shape or found.train.classes != model.classes:
        raise ToolError(
            f"{source}: pictures {found.train.shape} of {len(found.train.classes)} classes do not fit this model "
            f"({model.shape}, {len(model.classes)} classes); name data of the same kind"
        )
    seen = model.look(found.test.images)
    logits, scores = [outlook.logits for outlook in seen], [outlook.prototypes for outlook in seen]
    accuracy = accuracies(logits, scores, found.test.labels)
    return {"data": source, "pictures": len(found.test.labels), "accuracy": accuracy}
