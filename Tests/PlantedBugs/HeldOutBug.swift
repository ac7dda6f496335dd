/// Interceptors with one bug each, in the order of the second list in README.md. They are younger than the explorer, which was not
/// changed for them: they show how much of what it does not know it finds.
package enum HeldOutBug {
  package static let all: [ExplorationCase] = [
    .ledRefresh, .newKeys, .consumedBody, .leakedGauge, .touchyBreaker,
    .refusedTokenAgain, .cutAnswer, .gatheredStream, .sharedFlight, .overtakingEnd,
  ]
}
