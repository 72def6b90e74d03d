"""So many nodes that do nothing, in one LangGraph graph with SqliteSaver: ``noop.py FOLDER STEPS``.

The graph loops over one node and is run with ``durability="sync"``. Prints how many seconds that
took, without the start of the program.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Literal, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

FOLDER, STEPS = Path(sys.argv[1]), int(sys.argv[2])


class State(TypedDict):
    """What LangGraph keeps in its checkpoints."""

    number: int


def nothing(state: State) -> State:
    """Do nothing but count."""
    return {"number": state["number"] + 1}


def more(state: State) -> Literal["more", "done"]:
    """Whether a step is left."""
    return "more" if state["number"] < STEPS else "done"


def main() -> None:
    """Run the graph once."""
    graph = StateGraph(State)
    graph.add_node("nothing", nothing)
    graph.add_edge(START, "nothing")
    graph.add_conditional_edges("nothing", more, {"more": "nothing", "done": END})
    with SqliteSaver.from_conn_string(str(FOLDER / "langgraph.sqlite")) as saver:
        compiled = graph.compile(checkpointer=saver)
        began = time.perf_counter()
        compiled.invoke(
            {"number": 0},
            {"configurable": {"thread_id": "noop"}, "recursion_limit": STEPS + 10},
            durability="sync",
        )
        print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
