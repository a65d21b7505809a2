/* The kit of the vehicle routing problem with time windows, compiled: see reference.py for what each
 * function does. Its sources are those of the CVRP's. */

#define TIMED 1
#include "../../cvrp/kit/native.c"
