# role: repair
# problem: cvrp
# expect: rejected
# why: more nested blocks than Python compiles
def repair(dist, demands, capacity, partial_routes, removed_customers, steps_since_improvement, rng):
    routes = [list(route) for route in partial_routes if len(route)]
    for x0 in [1]:
     for x1 in [1]:
      for x2 in [1]:
       for x3 in [1]:
        for x4 in [1]:
         for x5 in [1]:
          for x6 in [1]:
           for x7 in [1]:
            for x8 in [1]:
             for x9 in [1]:
              for x10 in [1]:
               for x11 in [1]:
                for x12 in [1]:
                 for x13 in [1]:
                  for x14 in [1]:
                   for x15 in [1]:
                    for x16 in [1]:
                     for x17 in [1]:
                      for x18 in [1]:
                       for x19 in [1]:
                        for x20 in [1]:
                         for x21 in [1]:
                          for x22 in [1]:
                           for x23 in [1]:
                            for x24 in [1]:
                             for x25 in [1]:
                              for x26 in [1]:
                               for x27 in [1]:
                                for x28 in [1]:
                                 for x29 in [1]:
                                  pass
    for customer in removed_customers:
        routes.append([customer])
    return routes
