"""One object, one verdict: a state, a reason for programs, a sentence for people."""
