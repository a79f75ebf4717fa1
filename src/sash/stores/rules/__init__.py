"""The rules of the store contract, once for all backends: pure functions without I/O. They import no backend.

A backend reads a state, calls the rule, and writes the change that the rule returns, all in one transaction.
If a call is not allowed, the rule raises the contract's error, before the backend has written anything.

A query may leave out rows that a rule would reject, but the rule decides. If a statement has to repeat a
rule, the rule's docstring names the statement.
"""
