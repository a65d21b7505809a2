# role: repair
# problem: tsp
# expect: contained
# why: fifty nested functions
def repair(dist, partial_tour, removed_nodes, steps_since_improvement, rng):
    tour = list(partial_tour)
    def f0():
     def f1():
      def f2():
       def f3():
        def f4():
         def f5():
          def f6():
           def f7():
            def f8():
             def f9():
              def f10():
               def f11():
                def f12():
                 def f13():
                  def f14():
                   def f15():
                    def f16():
                     def f17():
                      def f18():
                       def f19():
                        def f20():
                         def f21():
                          def f22():
                           def f23():
                            def f24():
                             def f25():
                              def f26():
                               def f27():
                                def f28():
                                 def f29():
                                  def f30():
                                   def f31():
                                    def f32():
                                     def f33():
                                      def f34():
                                       def f35():
                                        def f36():
                                         def f37():
                                          def f38():
                                           def f39():
                                            def f40():
                                             def f41():
                                              def f42():
                                               def f43():
                                                def f44():
                                                 def f45():
                                                  def f46():
                                                   def f47():
                                                    def f48():
                                                     def f49():
                                                      return 1
    tour.extend(removed_nodes)
    return tour
