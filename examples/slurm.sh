#!/bin/bash
# A batch job for Slurm: sbatch examples/slurm.sh. Submitted again it goes on from where it was.
#SBATCH --job-name=affpcl
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@120

# Slurm sends SIGTERM to the ranks two minutes before the end: they write a checkpoint and leave. The folders must be on a file
# system that the first rank can write to. One rank a node with threads inside needs fewer messages than one rank a core.
srun --mpi=pmix affpcl run study.toml --threads "$SLURM_CPUS_PER_TASK" \
  --out result --force --checkpoint saved --resume
