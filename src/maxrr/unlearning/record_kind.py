"""What the records of a model are like, for whoever names some of them or brings others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxrr.data import Dataset
from maxrr.data.fields import described
from maxrr.data.labels import class_name
from maxrr.data.tables import in_order_of
from maxrr.errors import UnknownClass
from maxrr.unlearning.records import of_kind
from maxrr.unlearning.state import ModelState


@dataclass(frozen=True)
class RecordKind:
    """Shape, type, columns, classes and types of ids of a model's records: what other records have to match.

    Attributes
    ----------
    shape : tuple of int
        The shape of one record; () where it has several inputs.
    dtype : numpy.dtype
        The type of its numbers; where it has several inputs, a structured type with one field for each.
    columns : tuple of str or None
        The names of the columns, in a table; None where they are not known.
    class_names : tuple of str
        The names of all classes, those without records included.
    present : tuple of int
        Which classes have records, as places in `class_names`.
    text_ids : bool
        Whether record ids are texts; otherwise they are integers.
    text_subjects : bool or None
        Whether subject ids are texts; None where the records have no subject ids.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    columns: tuple[str, ...] | None = None
    class_names: tuple[str, ...] = ()
    present: tuple[int, ...] = ()
    text_ids: bool = False
    text_subjects: bool | None = None

    @classmethod
    def _of(cls, fitted: ModelState) -> Self:
        """Describe the records of a model."""
        records = fitted.records
        return cls(
            records.shape, records.dtype, records.columns, records.class_names, tuple(records.present.tolist()),
            records.text_ids, records.text_subjects,
        )  # fmt: skip

    def __str__(self) -> str:
        if self.dtype.names is not None:
            return described(self.dtype, self.shape)
        return f"{' × '.join(map(str, self.shape))} {self.dtype}"

    def conform(self, records: Dataset) -> Dataset:
        """Convert ids, subjects, class names and the order of columns to those of the model, where records from a file
        differ.

        A file in which every id happens to be an integer is read as one with integers. When the only other one is
        deleted, '7' must not become 7: it would be another record, and one that was forgotten would not be recognised.
        The other way round, a table with types may have the texts of integers. Classes have the names that the
        workspace has for them: a workspace may know the class 1 as '1.0', from a file of text.

        Parameters
        ----------
        records : Dataset
            Records from any source.

        Returns
        -------
        Dataset
            The records themselves, where nothing has to change.
        """
        ids, subjects = of_kind(records.ids, text=self.text_ids), records.subjects
        if subjects is not None and self.text_subjects is not None:
            subjects = of_kind(subjects, text=self.text_subjects)
        known = {class_name(name): name for name in self.class_names}
        names = tuple(
            name if name in self.class_names else known.get(class_name(name), name) for name in records.class_names
        )
        if len(set(names)) < len(names):
            names = records.class_names
        if ids is not records.ids or subjects is not records.subjects or names != records.class_names:
            records = replace(records, ids=ids, subjects=subjects, class_names=names)
        return in_order_of(self.columns, records)

    def join(self, parts: Sequence[Dataset]) -> Dataset:
        """Conform the records of several sources, and join them. Of records with one id the first is kept.

        Parameters
        ----------
        parts : sequence of Dataset
            Records from any sources.

        Returns
        -------
        Dataset
            All of them.
        """
        found = list[Dataset]()
        taken: Any = None
        for part in map(self.conform, parts):
            new = part.ids if taken is None else np.setdiff1d(part.ids, taken)
            taken = new if taken is None else np.union1d(taken, new)
            if len(new) or not found:
                kept = part if len(new) == len(part) else part.select(new)
                found.append(replace(kept, inputs=kept.inputs.astype(self.dtype, copy=False)) if found else kept)
        return found[0].join(*found[1:]) if len(found) > 1 else found[0]

    def with_classes(self, records: Dataset) -> Dataset:
        """Conform records, and label them by the model's classes: a source with few records may name few of these.

        Parameters
        ----------
        records : Dataset
            Records from any source, whose classes have the names that they have in the workspace.

        Returns
        -------
        Dataset
            The same records, labelled by places in `class_names`. Classes that the workspace has forgotten keep the
            names that they have in the source.

        Raises
        ------
        maxrr.errors.DataError
            A class of the records is not one of the workspace.
        """
        classes = {self.class_names[label]: label for label in self.present}
        if len(records.class_names) == len(self.class_names) and all(
            records.class_names[label] == name for name, label in classes.items()
        ):  # also where it has forgotten the names of others: those who bring their records still know them
            return self.conform(records)
        unknown = [name for name in records.class_names if name not in classes]
        if unknown:
            raise UnknownClass(f"{records.name}: class {unknown[0]} is none of the workspace's: {', '.join(classes)}")
        labels = np.array([classes[name] for name in records.class_names])[records.labels]
        return self.conform(replace(records, labels=labels, class_names=self.class_names))
