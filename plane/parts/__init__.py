"""The programs a control plane is made of: how each is started, told what to do, and ended."""
