"""Health in Flux: kstatus, with the rule of Flux for Jobs.

The rules are pure functions of an object and, for Pods, of the time.
"""

from tidegate.health.kstatus.judge import judge, judge_with_pods, next_verdict_change

__all__ = ["judge", "judge_with_pods", "next_verdict_change"]
