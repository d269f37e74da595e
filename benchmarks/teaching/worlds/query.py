"""Query: a question over a small SQLite database whose table and columns have other names in every task.

The names are seen in the schema alone. The student's flaws: it asks before it looks at the schema, and
where the smallest value is wanted it asks for the largest.
"""

import sqlite3
from typing import Any, NoReturn

from benchmarks.teaching.worlds.world import Action, ToolFailure, draw

TABLES = ("items", "parts", "goods", "wares")
VALUES = ("price", "cost", "fee", "rate")
COUNTS = ("stock", "units", "amount", "pieces")
ASKED = {"largest": "max(", "smallest": "min(", "total": "sum("}
ANSWER = "answer.txt"
_SCHEMA = "sqlite3 shop.db .schema"
_GUESS = ("items", "price")


class QueryEnvironment:
    """A database with one table of three columns, and a file for the answer."""

    def reset(self, task: int, **_: Any) -> str:
        rng = draw("query", task)
        self._table = rng.choice(TABLES)
        value, count = rng.choice(VALUES), rng.choice(COUNTS)
        self._asked = rng.choice(list(ASKED))
        self._kind = rng.choice(("value", "count"))
        self._column = value if self._kind == "value" else count
        columns = [f"{value} INTEGER", f"{count} INTEGER"]
        rng.shuffle(columns)
        self._schema = f"CREATE TABLE {self._table} ( name TEXT , {' , '.join(columns)} ) ;"
        order = [column.split()[0] for column in columns]
        self._rows = [{value: rng.randrange(10, 20), count: rng.randrange(2, 10)} for _ in range(4)]
        self._values = [tuple(row[name] for name in order) for row in self._rows]
        self._looked = False
        self._found: str | None = None
        self._shown: str | None = None
        self._failed = False
        self._answer: str | None = None
        self.done = False
        return f"Ticket #{task} . What is the {self._asked} {self._kind} in shop.db ? Write it to {ANSWER} ."

    def get_reward(self) -> float:
        return float(self.done and self._answer == str(self._truth()))

    def Bash(self, command: str) -> str:
        """Run a command of the shell.

        Args:
            command: The command.
        """
        self._failed = False
        if command == _SCHEMA:
            self._looked = True
            return self._schema
        head, query = 'sqlite3 shop.db "', command.removeprefix('sqlite3 shop.db "').removesuffix('"')
        if not command.startswith(head):
            self._fail("command not found")
        try:
            found = self._run(query)
        except sqlite3.Error as error:
            self._fail(f"Error : {' '.join(str(error).replace(':', ' : ').split())}")
        self._shown = found
        if query == self._query():
            self._found = found
        return found

    def Write(self, file_path: str, content: str) -> str:
        """Write a file.

        Args:
            file_path: The file.
            content: What it holds.
        """
        self._failed = False
        if file_path == ANSWER:
            self._answer = content
        return f"{file_path} was written"

    def _fail(self, text: str) -> NoReturn:
        self._failed = True
        raise ToolFailure(f"Exit code 1\n{text}")

    def _run(self, query: str) -> str:
        with sqlite3.connect(":memory:") as database:
            database.execute(self._schema)
            database.executemany(f"INSERT INTO {self._table} VALUES ('x', ?, ?)", self._values)
            row = database.execute(query).fetchone()
        return str(row[0]) if row else ""

    def _query(self, function: str | None = None) -> str:
        return f"SELECT {function or ASKED[self._asked]} {self._column} ) FROM {self._table} ;"

    def _truth(self) -> int:
        values = [row[self._column] for row in self._rows]
        return {"largest": max, "smallest": min, "total": sum}[self._asked](values)


class QueryWorld:
    """The right actions in a `QueryEnvironment`."""

    name = "query"
    session_format = "claude_code"
    turns = 10
    flaw_rate = 0.6
    slip_rate = 0.04

    def environment(self) -> QueryEnvironment:
        return QueryEnvironment()

    def right(self, env: QueryEnvironment) -> list[Action]:
        if env._answer is not None and env._answer == env._found:
            return [Action.say()]
        if env._found is not None:
            return [_write(env._found)]
        if not env._looked:
            return [Action.call("Bash", command=_SCHEMA)]
        return [_ask(env._query())]

    def flaw(self, env: QueryEnvironment) -> Action | None:
        if env._answer is not None:
            return Action.say() if env._answer != env._found else None
        if env._found is None and env._shown is not None:
            return _write(env._shown)
        if env._found is not None:
            return None
        if not env._looked:
            table, column = _GUESS
            guess = _ask(f"SELECT {ASKED[env._asked]} {column} ) FROM {table} ;")
            return _write("0") if env._failed else guess
        return _ask(env._query(ASKED["largest"])) if env._asked == "smallest" else None

    def slips(self, env: QueryEnvironment) -> list[Action]:
        other = next(function for asked, function in ASKED.items() if asked != env._asked)
        slips = [Action.call("Bash", command=_SCHEMA), _write("7"), Action.say()]
        if env._looked:
            slips.append(_ask(env._query(other)))
        return [slip for slip in slips if slip not in self.right(env)]

    def common_error(self, env: QueryEnvironment) -> Action:
        if env._answer is None and env._found is not None:
            return _write(str(int(env._found) + 1))
        if env._looked and env._found is None:
            return _ask(env._query("count("))
        return Action.call("Bash", command="sqlite3 shop.db .tables")


def _ask(query: str) -> Action:
    return Action.call("Bash", command=f'sqlite3 shop.db "{query}"')


def _write(content: str) -> Action:
    return Action.call("Write", file_path=ANSWER, content=content)
