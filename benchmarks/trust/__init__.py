"""Whether the error bars, the gate and the audit hold what they promise: replicates by the thousand."""
