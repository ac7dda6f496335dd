/// An interceptor that makes calls again as the service's ``RetryRules`` say, which a request brings along.
package protocol RetryRulesFollowing: Interceptor {}
