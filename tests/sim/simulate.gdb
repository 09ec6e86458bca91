# For gdb: stops where a promise is broken, and finds the symbols of the ranks' code.
#   rank        the rank that runs
#   symbols     adds the symbols of the image of the rank that runs; again after a switch
#   where       the same, and the calls that led here
set breakpoint pending on
set pagination off
break sim_fail
define rank
  printf "rank %u, %s, at %ld ns\n", sim_task->process->rank, sim_task->name, sim_task->now
end
define symbols
  remove-symbol-file -a sim_task->process->image.base
  add-symbol-file -o (unsigned long)sim_task->process->image.base tests/sim/.libs/rank.so
end
define where
  symbols
  backtrace
end
