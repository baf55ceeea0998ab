"""Health in Flux: kstatus, with the rule of Flux for Jobs.

The rules are pure functions of an object and, for Pods, of the time. They are those of
fluxcd/cli-utils 1.2.3 (`pkg/kstatus`) and of fluxcd/pkg/runtime 0.110.3 (`statusreaders`).
"""

from tidegate.health.kstatus.judge import judge, judge_with_pods, next_verdict_change

__all__ = ["judge", "judge_with_pods", "next_verdict_change"]
