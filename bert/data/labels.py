"""Labels of texts: their kind and names, and how logits become them.

`postprocessing` converts logits with these values.
"""

import dataclasses
from typing import Any, Self

from bert.common.errors import UserError

KINDS = CLASSES, MULTI_LABEL, REGRESSION = (
    "classes",
    "multi_label",
    "regression",
)
_FIELDS = {"cuts": "thresholds"}  # keys of JSON that have another name


@dataclasses.dataclass(frozen=True)
class PostProcessing:
    """Post-processing of logits to predictions and probabilities.

    Attributes:
        thresholds: tuple of C floats, or (). Thresholds of the logits. They
            change the predictions, but not the probabilities.
        log_weights: tuple of C floats, or (). Logarithms of the class weights
            in training, which shifted the logits. They are subtracted before
            computing probabilities, and predictions without thresholds.
        temperature: float. Divides the logits before the probabilities are
            computed. Default: 1.
        unknown_below: float. Minimum probability of a predicted class; below
            it the prediction is "unknown". Default: 0.
    """

    thresholds: tuple[float, ...] = ()
    log_weights: tuple[float, ...] = ()
    temperature: float = 1.0
    unknown_below: float = 0.0

    @classmethod
    def of_task(cls, task: dict) -> Self:
        """Reads the post-processing from the content of a `task.json`."""
        values: dict[str, Any] = {
            _FIELDS.get(key, key): tuple(x) if isinstance(x, list) else x
            for key, x in task.get("decision", {}).items()
        }
        return cls(**values)

    def described(self) -> dict:
        """Returns the entry of `task.json`; {} for the default."""
        if self == PLAIN:
            return {}
        keys = {field: key for key, field in _FIELDS.items()}
        values = {
            keys.get(field, field): [*x] if isinstance(x, tuple) else x
            for field, x in dataclasses.asdict(self).items()
        }
        return {"decision": values}


PLAIN = PostProcessing()


@dataclasses.dataclass(frozen=True)
class Labels:
    """The valid labels of a task.

    Attributes:
        kind: str. CLASSES: one of the names; MULTI_LABEL: any number of them;
            REGRESSION: a number.
        names: tuple of str. Names of the classes, in the order of their ids.
        aliases: tuple of (str, str). Pairs of an alternative spelling in the
            files and the name.
        separator: str. Separator of names in a field, for MULTI_LABEL.
        decision: PostProcessing. Post-processing; ignored in comparisons.
    """

    kind: str = CLASSES
    names: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    separator: str = ","
    decision: PostProcessing = dataclasses.field(default=PLAIN, compare=False)

    @classmethod
    def of_task(cls, task: dict) -> Self:
        """Reads the labels from the content of a `task.json`."""
        names = tuple(task["labels"])
        return cls(task["kind"], names, decision=PostProcessing.of_task(task))

    @property
    def size(self) -> int:
        """C, the number of outputs of the network."""
        return 1 if self.kind == REGRESSION else len(self.names)

    def __str__(self) -> str:
        """Formats kind and names for a message."""
        names = self.names
        more = f", ... ({len(names)})" if len(names) > 5 else ""
        return " ".join([self.kind, ", ".join(names[:5]) + more]).rstrip()

    def check_same(
        self,
        trained: Self,
        *,
        may_rename: bool = False,
        path: str | None = None,
        fix: str,
    ) -> None:
        """Checks that weights were trained with these labels.

        Reordered labels would silently swap classes.

        Args:
            trained: Labels. The labels in training.
            may_rename: bool. Whether classes may have new names, such as
                positive instead of 1. Default: False.
            path: str or None. The weights, for the message.
            fix: str. Advice for the message.

        Raises:
            UserError: The kind or the names differ, or the names are in
                another order.
        """
        same_names = self.names == trained.names or (
            may_rename and sorted(self.names) != sorted(trained.names)
        )
        if self.kind != trained.kind or not same_names:
            raise UserError(
                f"trained with the labels: {trained}",
                path=path,
                expected=str(self),
                fix=fix,
            )
