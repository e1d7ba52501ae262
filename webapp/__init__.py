"""People and programs: accounts, runs, REST, websockets, tasks, and the `kernelwright` command."""
