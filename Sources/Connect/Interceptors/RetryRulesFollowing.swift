/// An interceptor that retries calls by the service's ``RetryRules``, which the request carries.
package protocol RetryRulesFollowing: Interceptor {}
