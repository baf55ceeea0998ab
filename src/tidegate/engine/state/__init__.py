"""State of a rollout, and how each input changes it: order of steps, writes and gates.

    input                                     events                        commands
    RolloutStarted(plan: wave 0 → wave 1)     step.checking wave 0          CompareStep(wave 0)
    StepCompared(wave 0: web is absent)       step.applying wave 0          Apply(web)
    WriteFinished(web, generation 1)          object.written, step.gating
    HealthChanged(web, observed 0: Healthy)   gate.waiting: not observed
    HealthChanged(web, observed 1: Healthy)   gate.opened, step.passed      SaveJournal(wave 0)
                                              step.checking wave 1          CompareStep(wave 1)
    …
    WriteFinished, HealthChanged of wave 1    step.passed, unit.finished
                                              rollout.finished

`start_order` decides which step starts when, `start_conditions` what else a step waits for.
`apply` writes the objects of a step, `step_gates` checks them with `gates`, `completion` ends units
one by one, `replan` adds expanded steps and switches to newer plans, and `links` adds steps and
edges. They are the only modules that change the state in `rollout`.
"""
