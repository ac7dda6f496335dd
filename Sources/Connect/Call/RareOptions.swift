/// Options that few calls have, kept apart so that other calls do not pay for them.
final class RareOptions: Sendable {
  struct Values: Sendable {
    var hedging: HedgingPolicy?
    var format: MethodFormat?
    var authority: CallDestination?
    var arrangement: (@Sendable ([any Interceptor]) -> [any Interceptor])?
  }

  let values: Values

  init(_ values: Values) { self.values = values }
}
