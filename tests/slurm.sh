#!/usr/bin/env bash
# The workflow under a real Slurm of two nodes on this machine, in a copy of the checkout.
# Needs root, Debian's slurmctld, slurmd, slurm-client and munge, and in the environment of python
# snakemake-executor-plugin-slurm and snakemake-executor-plugin-cluster-generic:
#   PATH=.venv/bin:$PATH tests/slurm.sh [figure_...]
# All servers listen on the loopback only and are stopped in the end.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
targets=("${@:-figure_os_figure_1}")
here=$(mktemp -d /tmp/slurm-XXXXXX)
export PYTHONPATH=$here/checkout
servers=()
# The plugin clears SLURM_CONF from its jobs: they look where Debian does.
conf=/etc/slurm/slurm.conf
[ ! -e $conf ] || { echo "$conf is there: this machine has a Slurm of its own" >&2; exit 1; }

finish() {
    code=$?
    for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait || true
    [ $code = 0 ] || tail -n 5 "$here"/*.log
    rm -rf "$here" $conf
    exit $code
}
trap finish EXIT

serve() { # name command...
    local name=$1
    shift
    "$@" >"$here/$name.log" 2>&1 &
    servers+=($!)
}

# -------------------------------------------------- a cluster

dd if=/dev/urandom of="$here/key" bs=1024 count=1 status=none
chmod 400 "$here/key"
cat >$conf <<CONF
ClusterName=try
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=16817
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$here/munge.sock
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=0
MinJobAge=300
SchedulerParameters=sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=OverMemoryKill
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool-%n
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd-%n.pid
NodeName=one NodeHostname=localhost NodeAddr=127.0.0.1 Port=16818 CPUs=1 RealMemory=6000
NodeName=two NodeHostname=localhost NodeAddr=127.0.0.1 Port=16819 CPUs=1 RealMemory=6000
PartitionName=all Nodes=one,two Default=YES MaxTime=INFINITE State=UP
CONF
mkdir "$here/state" "$here/spool-one" "$here/spool-two"
serve munged munged --foreground --force --num-threads 2 --key-file "$here/key" \
    --socket "$here/munge.sock" --pid-file "$here/munge.pid" --log-file "$here/munged.log" \
    --seed-file "$here/seed"
sleep 1
serve slurmctld slurmctld -D -c
sleep 2
serve slurmd-one slurmd -D -N one
serve slurmd-two slurmd -D -N two
for _ in $(seq 60); do
    [ "$(sinfo -h -t idle -o %D)" = 2 ] && break
    sleep 1
done
sinfo
open=$(ss -Hltnp | grep -E 'slurm|munged' | awk '{print $4}' | grep -v '^127\.0\.0\.1:' || true)
[ -z "$open" ] || { echo "a server listens elsewhere: $open" >&2; exit 1; }

# -------------------------------------------------- the workflow

mkdir "$here/checkout"
(cd "$source" && git ls-files -co --exclude-standard -z | tar --null -T - -cf - | tar xf - -C "$here/checkout")
cd "$here/checkout"
flow() {
    python -m snakemake --profile profiles/slurm --slurm-no-account \
        --slurm-status-command squeue --slurm-init-seconds-before-status-checks 5 \
        --seconds-between-status-checks 3 --latency-wait 10 "$@" --config scale=smoke real_data=none
}
say() { printf '\n== %s\n' "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
results() { find . -path './results/smoke/*.csv' | wc -l; }

say "a job over its memory limit: stopped, tried once more, failed; nothing is left of it"
if flow "${targets[@]}" --set-resources run:mem_mb=50 >"$here/memory.log" 2>&1; then
    fail "a limit of 50 MB stopped nothing"
fi
grep -c "^Failed: " "$here/memory.log"
grep -rhE "being killed" .snakemake/slurm_logs || fail "it failed for another reason"
[ "$(results)" = 0 ] || fail "half a result is left"

say "a node set down in the middle: its job is made on the other"
flow "${targets[@]}" >"$here/down.log" 2>&1 &
running=$!
node=
for _ in $(seq 120); do
    node=$(squeue -h -t running -o %N | head -n 1)
    [ -n "$node" ] && break
    sleep 0.5
done
[ -n "$node" ] || fail "no job began: $(cat "$here/down.log")"
sleep 3
scontrol update nodename="$node" state=down reason=test
sinfo -h -N -o "node %N: %T"
wait $running || fail "$(tail -n 30 "$here/down.log")"
grep -E "^\[[0-9]+ of|NODE_FAIL|Trying to restart" "$here/down.log"
grep -h "Launching batch job" "$here"/slurmd-*.log
scontrol update nodename="$node" state=resume
made=$(results)
[ "$made" -gt 0 ] || fail "no result"

say "the same once more: nothing to do"
flow "${targets[@]}" 2>&1 | grep "Nothing to be done"

say "a result removed, made again through the generic profile"
result=$(find results/smoke -name '*.csv' | head -n 1)
before=$(sha256sum "$result")
rm "$result"
python -m snakemake --profile profiles/generic --latency-wait 10 "$result" \
    --cluster-generic-submit-cmd \
    "sbatch --parsable -o /dev/null --mem={resources.mem_mb} --time={resources.runtime} -J {rule}" \
    --cluster-generic-cancel-cmd scancel --config scale=smoke real_data=none 2>&1 | grep -E "^\[1 of 1"
[ "$(sha256sum "$result")" = "$before" ] || fail "another result"

say "all passed: $made results"
