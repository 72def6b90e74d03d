"""The same forty customers with LangGraph's functional API: each charge and each mail is a `@task`.

``durability="sync"`` here as well. A finished task's result is handed to a background thread to be
saved, and nothing waits for it before the next task begins: LangGraph's issue 8039.

``KEYS=1`` as in `task`, whose two clients are used.
"""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import entrypoint, task
from task import DURABILITY, ORDERS, STATE, THREAD, Order, charge, mail

charge_task = task(charge)
mail_task = task(mail)


def main() -> None:
    """Start the thread, or go on with it where a checkpoint of it exists."""
    config: RunnableConfig = {"configurable": {"thread_id": THREAD}}
    with SqliteSaver.from_conn_string(str(STATE / "checkpoints.sqlite")) as saver:

        @entrypoint(checkpointer=saver)
        def receipts(orders: list[Order]) -> int:
            """Serve every customer; how many there were."""
            for number, order in enumerate(orders):
                charge_task(order, f"{THREAD}/{number}").result()
                mail_task(order, f"{THREAD}/{number}").result()
            return len(orders)

        begun = saver.get_tuple(config) is not None
        final = receipts.invoke(None if begun else ORDERS, config, durability=DURABILITY)
    print(f"{final} customers served")


if __name__ == "__main__":
    main()
