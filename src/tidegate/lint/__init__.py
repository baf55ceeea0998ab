"""Rules about the deployment order. They map a context to diagnostics.

    diagnostics = run_rules(context, RULES.values())

A rule is a small pure function with an id, a title, a severity, a reason and a fix. Each rule has a
page in `docs/rules` with a bad example, which the rule reports, and a good example.
"""
