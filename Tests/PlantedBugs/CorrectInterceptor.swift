/// Interceptors without bugs, of the kinds of those in ``PlantedBug``.
package enum CorrectInterceptor {
  package static let all: [ExplorationCase] = [
    .refreshingTokens, .patientRetry, .fairLimit, .healingBreaker, .redactedErrors,
    .orderedSealing, .tokenTimeLimit, .countedOnce, .stoppedLoser, .userTokens,
  ]
}
