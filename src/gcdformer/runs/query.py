"""Questions to many runs, in DuckDB: filter, sort, best of seeds, groups, or any SQL over tables `runs` and `metrics`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gcdformer.config import config_leaves
from gcdformer.errors import MissingExtra, UserError
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.index import runs_table

try:
    import duckdb
    import pyarrow as pa
except ImportError:
    raise MissingExtra("duckdb", "query") from None

IDENTITY = [leaf.name for leaf in config_leaves() if leaf.section not in ("limits", "machine")]
ORDER = "best_n_correct DESC NULLS LAST, best_accuracy DESC NULLS LAST, name"
FIGURES = ["epoch", "n_correct", "accuracy", "best_n_correct", "best_accuracy", "seconds"]
GROUPED = ("count(*) AS runs, max(best_n_correct) AS best_n_correct, avg(best_n_correct) AS mean_n_correct, "
           "max(best_accuracy) AS best_accuracy, avg(best_accuracy) AS mean_accuracy, sum(seconds) AS seconds")


@dataclass(frozen=True)
class RunsQuery:
    """What is asked; `sql` instead of everything else."""

    where: str | None = None
    sort: str | None = None
    best_of_seeds: bool = False
    group_by: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    limit: int | None = None
    sql: str | None = None


@dataclass(frozen=True)
class QueryResult:
    """Named columns and rows of plain values."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


class RunsDatabase:
    """The runs under a folder, ready to be asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.table = runs_table(root)
        self.database = duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})
        self.database.register("runs", self.table.drop_columns(["stamp"]))

    def problems(self) -> list[str]:
        """Runs that could not be read, in words."""
        return [text for text in self.table["problem"].to_pylist() if text is not None]

    def ask(self, question: RunsQuery) -> QueryResult:
        """The answer; a mistake in the question is a `UserError`."""
        if question.sql is None:
            return self.execute(self.sql_of(question))
        if re.search(r"\bmetrics\b", question.sql, re.IGNORECASE):
            self.database.register("metrics", self.metrics_table())
        return self.execute(question.sql)

    def execute(self, sql: str) -> QueryResult:
        try:
            cursor = self.database.execute(sql)
            return QueryResult([column[0] for column in cursor.description or []], cursor.fetchall())
        except duckdb.Error as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            raise UserError(f"query: {' '.join(lines[:2])}") from None

    def sql_of(self, question: RunsQuery) -> str:
        """The SQL of a question."""
        for name in (*question.group_by, *(() if question.group_by else question.columns)):
            if name not in self.table.schema.names:
                raise UserError(f"query: no column '{name}': the columns are {', '.join(self.columns())}")
        source = "SELECT * FROM runs" + (f" WHERE {question.where}" if question.where else "")
        if question.best_of_seeds:
            same = ", ".join(name for name in IDENTITY if name not in ("seed", "horizon"))
            source = (f"SELECT *, count(*) OVER (PARTITION BY {same}) AS seeds FROM ({source}) "
                      f"QUALIFY row_number() OVER (PARTITION BY {same} ORDER BY {ORDER}) = 1")
        if question.group_by:
            order = ", ".join(question.group_by)
            source = f"SELECT {order}, {GROUPED} FROM ({source}) GROUP BY {order}"
        else:
            seeds = ["seeds"] if question.best_of_seeds and not question.columns else []
            order = ORDER
            source = f"SELECT {', '.join([*(question.columns or self.default_columns()), *seeds])} FROM ({source})"
        limit = f" LIMIT {question.limit}" if question.limit is not None else ""
        return f"{source} ORDER BY {question.sort or order}{limit}"

    def columns(self) -> list[str]:
        return [name for name in self.table.schema.names if name != "stamp"]

    def default_columns(self) -> list[str]:
        """The name, the settings in which the runs differ (one may have what another lacks), and the figures."""
        counted = ", ".join(f"count(DISTINCT {name}) + max(({name} IS NULL)::INTEGER)" for name in IDENTITY)
        counts = self.execute(f"SELECT {counted} FROM runs WHERE problem IS NULL").rows[0]
        varying = [name for name, count in zip(IDENTITY, counts, strict=True) if (count or 0) > 1 and name != "horizon"]
        return ["path", *varying, *FIGURES]

    def metrics_table(self) -> pa.Table:
        """Every evaluation of every run, with the path of its run."""
        rows: list[dict[str, object]] = []
        for path, problem in zip(self.table["path"].to_pylist(), self.table["problem"].to_pylist(), strict=True):
            if problem is None:
                rows += [{"path": path, **line} for line in RunFolder(self.root / path).metrics()]
        names = dict.fromkeys(name for row in rows for name in row)  # tasks without GCD have fewer
        columns = {name: [row.get(name) for row in rows] for name in names}
        return pa.table(columns) if rows else pa.table({"path": pa.array([], pa.string())})
