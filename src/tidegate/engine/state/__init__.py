"""State of a rollout, and how each input changes it: order of steps, writes and gates.

    input                                     events                        commands
    RolloutStarted(plan: wave 0 → wave 1)     step.checking wave 0          CompareStep(wave 0)
    StepCompared(wave 0: web is absent)       step.applying wave 0          Apply(web)
    WriteFinished(web, generation 1)          object.written, step.gating
    HealthChanged(web, observed 0: Healthy)   gate.waiting: not observed
    HealthChanged(web, observed 1: Healthy)   gate.opened, step.passed      SaveJournal(wave 0)
                                              step.checking wave 1          CompareStep(wave 1)
    …
    WriteFinished, HealthChanged of wave 1    step.passed, unit.ended
                                              rollout.ended

`order` decides which step starts when, `start_conditions` what else it waits for, `writes`
writes its objects, `gates` checks them with `gate_evaluation`, `completion` ends units one by
one, `replanning` adds expanded steps and switches to newer plans, and `step_graph` adds steps
and edges. They are the only modules that change the state in `rollout`.
"""
