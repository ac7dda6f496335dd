/// Interceptors with one bug each, in the order of the list in README.md.
package enum PlantedBug {
  package static let all: [ExplorationCase] = [
    .doubleRefresh, .refreshLoop, .lateSend, .proceedTwice, .forgottenError,
    .retryWithoutCap, .repeatedPayment, .blindBackoff, .sharedHeaders, .growingHeader,
    .lostTrailers, .lostHeaders, .wrongUser, .cachedError, .sleepingWaiters,
    .lostPermit, .stuckBreaker, .heldHeaders, .reordered, .lostBatch,
    .doubledMessages, .swallowedError, .cutStream, .cleanEndFails, .lateTimer,
    .keptInstance, .countedTwice, .runningLoser, .endlessPoller, .heldLock,
  ]
}
