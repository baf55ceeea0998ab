"""What one turn of a rollout does: to the order of steps, to their objects, to their gates.

    heard                                  told, and asked for
    Begun(plan: wave 0 → wave 1)           step.checking wave 0             CheckStep(wave 0)
    Checked(wave 0: web is absent)         step.applying wave 0             Apply(web)
    Wrote(web, generation 1)               object.written, step.gating      (nothing)
    Judged(web, seen 0: Healthy)           gate.waiting: not observed yet   (nothing)
    Judged(web, seen 1: Healthy)           gate.opened, step.passed         Remember(wave 0 opened)
                                           step.checking wave 1             CheckStep(wave 1)
    …
    Wrote, Judged of wave 1                step.passed, unit.ended          (nothing)
                                           rollout.ended

`ordering` knows which step starts when, `waiting` what else may hold it, `applying` writes its
objects, `gating` weighs them with `gates`, `ending` ends units one by one, `graft` adds late parts
and gives way to newer plans. All of them change the state in `rollout`, and nothing else does.
"""
