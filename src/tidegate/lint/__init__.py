"""Rules about deployment order: a context in, findings out.

    diagnostics = run_rules(context, RULES.values())

A rule is a small pure function with an id, a severity, a reason and a fix. Each has a page in
`docs/rules`, with an example that it reports and one that it does not.
"""
