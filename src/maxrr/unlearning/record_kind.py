"""What the records of a model are like, for whoever names some of them or brings others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.checks import check_identifiers, check_text
from maxrr.data.fields import described
from maxrr.data.labels import as_identifiers, class_name
from maxrr.data.tables import in_order_of
from maxrr.errors import DataError, NoSubjects, UnknownClass
from maxrr.unlearning.classes import without_name
from maxrr.unlearning.state import Fitted


@dataclass(frozen=True)
class RecordKind:
    """What the records of a model are like.

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
    labels : tuple
        What the model calls these classes, in the same order: `predict` returns them for an array.
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
    labels: tuple[Any, ...] = ()
    present: tuple[int, ...] = ()
    text_ids: bool = False
    text_subjects: bool | None = None

    @classmethod
    def _of(cls, fitted: Fitted) -> Self:
        """The kind of records that a model was fitted on."""
        records = fitted.records
        return cls(
            records.shape, records.dtype, records.columns, records.class_names, tuple(fitted.labels),
            tuple(records.present.tolist()), records.ids.dtype.kind == "U",
            None if records.subjects is None else records.subjects.dtype.kind == "U",
        )  # fmt: skip

    def __str__(self) -> str:
        if self.dtype.names is not None:
            return described(self.dtype, self.shape)
        return f"{' × '.join(map(str, self.shape))} {self.dtype}"

    def ids(self, texts: Sequence[str]) -> NDArray[Any]:
        """Record ids from texts, such as the arguments of a command.

        Parameters
        ----------
        texts : sequence of str
            One id per text.

        Returns
        -------
        array
            The ids: integers where the workspace has integers, otherwise the texts.

        Raises
        ------
        maxrr.errors.DataError
            A text cannot be an id of this workspace. Where ids are integers, '007' is none: it is not guessed to be 7.
        """
        return ids_of(texts, "record ids", as_texts=self.text_ids)

    def subjects(self, texts: Sequence[str]) -> NDArray[Any]:
        """Subject ids from texts.

        Parameters
        ----------
        texts : sequence of str
            One subject id per text.

        Returns
        -------
        array
            The subject ids: integers where the workspace has integers, otherwise the texts.

        Raises
        ------
        maxrr.errors.DataError
            The records have no subject ids, or a text cannot be one of them.
        """
        if self.text_subjects is None:
            raise NoSubjects("the records of this workspace do not say whom they are about")
        return ids_of(texts, "subject ids", as_texts=self.text_subjects)

    def label(self, name: str) -> Any:
        """What the model calls a class.

        Parameters
        ----------
        name : str
            One of `class_names`.

        Returns
        -------
        object
            The label of that class, one of `labels`.

        Raises
        ------
        maxrr.errors.DataError
            There is no such class, or it was forgotten with its last record.
        """
        known = {
            each: place for place, each in enumerate(self.class_names)
            if place in self.present or each != without_name(place)
        }  # fmt: skip
        if name not in known:
            raise UnknownClass(f"there is no class {name!r}; the classes are {', '.join(known)}")
        return self.labels[known[name]]

    def conform(self, records: Dataset) -> Dataset:
        """The same records, with ids and subjects of the kind, and columns in the order, that the workspace has.

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
        changes: dict[str, Any] = {}
        ids, subjects = of_kind(records.ids, self.text_ids), of_kind(records.subjects, self.text_subjects)
        if ids is not records.ids:
            changes["ids"] = ids
        if subjects is not records.subjects:
            changes["subjects"] = subjects
        known = {class_name(name): name for name in self.class_names}
        names = tuple(
            name if name in self.class_names else known.get(class_name(name), name) for name in records.class_names
        )  # fmt: skip
        if names != records.class_names and len(set(names)) == len(names):
            changes["class_names"] = names
        return in_order_of(self.columns, replace(records, **changes) if changes else records)

    def join(self, parts: Sequence[Dataset]) -> Dataset:
        """`conform` the records of several sources, and put them together. Where two have an id, the first counts.

        Parameters
        ----------
        parts : sequence of Dataset
            Records from any sources.

        Returns
        -------
        Dataset
            All of them. Their classes are those of the workspace, and after these the ones that it does not know.
        """
        first, *others = (self.conform(part) for part in parts)
        if not others:
            return first
        own = self.class_names
        if len(first.class_names) == len(own) and all(first.class_names[place] == own[place] for place in self.present):
            own = first.class_names  # which still has the names that the workspace has forgotten
        names = [*dict.fromkeys([*own, *(name for part in (first, *others) for name in part.class_names)])]
        place = {name: number for number, name in enumerate(names)}
        taken = np.empty(0, dtype=first.ids.dtype)
        found = []
        for part in (first, *others):
            new = np.setdiff1d(part.ids, taken)
            if not len(new):
                continue
            kept = part if len(new) == len(part) else part.select(new)
            labels = np.array([place[name] for name in kept.class_names], dtype=np.int64)[kept.labels]
            inputs = kept.inputs.astype(self.dtype, copy=False)
            found.append(replace(kept, inputs=inputs, labels=labels, class_names=tuple(names)))
            taken = np.union1d(taken, new)
        return found[0].join(*found[1:]) if found else first

    def with_classes(self, records: Dataset) -> Dataset:
        """`conform`, and give the records the classes of the workspace: a source with few records may have few of them.

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


def of_kind(ids: NDArray[Any] | None, as_texts: bool | None) -> NDArray[Any] | None:
    """Ids as texts or as integers; texts that are not all integers stay texts."""
    if ids is None or as_texts is None or (ids.dtype.kind == "U") == as_texts:
        return ids
    return ids.astype(np.str_) if as_texts else as_identifiers(ids.tolist())


def ids_of(texts: Sequence[str], what: str, *, as_texts: bool) -> NDArray[Any]:
    """Ids from texts: no record is forgotten by a guess."""
    if as_texts:
        return check_identifiers(list(texts), what)
    for text in texts:
        check_text(text, what)
        if as_identifiers([text]).dtype.kind != "i":
            raise DataError(f"{text!r} cannot be one of the {what} of this workspace, which are integers")
    return as_identifiers(list(texts))
