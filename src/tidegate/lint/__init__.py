"""Rules about order: what is known of a repository in, findings out.

    findings = check(scene, RULES, place_of)

A rule is a small pure function with an id, a severity, a reason and a way to mend it. Each has a
page in `docs/rules`, with a text in which it speaks and one in which it is silent.
"""
