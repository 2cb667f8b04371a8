"""Contracts that the exercises start from, as a student gets them: in ``%%contract`` cells, which import nothing."""

SAVINGS = '''class Savings(Module, address="0x5a7e"):
    """Everybody saves for themselves. No coins are moved: amounts are only written down."""

    class Saved(Resource):
        amount: u64

    E_TOO_MUCH = invalid_argument(1, "Nobody can withdraw more than they have saved")

    @entry
    def deposit(self, account: signer, amount: u64) -> None:
        pass

    @entry
    def withdraw(self, account: signer, amount: u64) -> None:
        pass

    @view
    def saved_by(self, owner: address) -> u64:
        return 0
'''

JAR = '''class Jar(Module, address="0x7a5"):
    """A jar for tips that has forgotten to store their sum."""

    class Tips(Resource):
        amounts: vector[u64]

    def init_module(self, account: signer) -> None:
        self.move_to(account, Jar.Tips(amounts=[]))

    @entry
    def tip(self, account: signer, amount: u64) -> None:
        with self.borrow_mut(Jar.Tips, "0x7a5") as tips:
            tips.amounts.append(amount)

    @view
    def total(self) -> u64:
        return sum(self.each(self.borrow(Jar.Tips, "0x7a5").amounts))
'''

VAULT = '''class Vault(Module, address="0x5afe"):
    """Stores coins for their owners."""

    class Accounts(Resource):
        stored: Table[address, u64]

    E_TOO_MUCH = invalid_argument(1, "The owner has stored less")

    def init_module(self, account: signer) -> None:
        self.move_to(account, Vault.Accounts(stored=self.new_table()))

    @entry
    def deposit(self, account: signer, amount: u64) -> None:
        self.use(Coin).transfer(APTOS_COIN, account, "0x5afe", amount)
        with self.borrow_mut(Vault.Accounts, "0x5afe") as accounts:
            before = accounts.stored.borrow_with_default(account, 0)
            accounts.stored.upsert(account, before + amount)

    @entry
    def withdraw(self, account: signer, owner: address, amount: u64) -> None:
        with self.borrow_mut(Vault.Accounts, "0x5afe") as accounts:
            before = accounts.stored.borrow_with_default(owner, 0)
            self.require(amount <= before, self.E_TOO_MUCH)
            accounts.stored.upsert(owner, before - amount)
        self.use(Coin).transfer(APTOS_COIN, self.own_signer(), account, amount)

    @view
    def stored_by(self, owner: address) -> u64:
        return self.borrow(Vault.Accounts, "0x5afe").stored.borrow_with_default(owner, 0)
'''

POOL = '''class Pool(Module, address="0x9001"):
    """A pool of coins. Who deposits gets shares, and `reward` makes every share worth more."""

    class State(Resource):
        shares: Table[address, u64]
        all_shares: u64
        coins: u64

    E_TOO_MUCH = invalid_argument(1, "The owner has fewer shares")

    def init_module(self, account: signer) -> None:
        self.move_to(account, Pool.State(shares=self.new_table(), all_shares=0, coins=0))

    @entry
    def deposit(self, account: signer, amount: u64) -> None:
        self.use(Coin).transfer(APTOS_COIN, account, "0x9001", amount)
        with self.borrow_mut(Pool.State, "0x9001") as state:
            new = amount
            if state.all_shares > 0:
                new = amount * state.all_shares // state.coins
            state.shares.upsert(account, state.shares.borrow_with_default(account, 0) + new)
            state.all_shares += new
            state.coins += amount

    @entry
    def reward(self, account: signer, amount: u64) -> None:
        self.use(Coin).transfer(APTOS_COIN, account, "0x9001", amount)
        with self.borrow_mut(Pool.State, "0x9001") as state:
            state.coins += amount

    @entry
    def withdraw(self, account: signer, shares: u64) -> None:
        with self.borrow_mut(Pool.State, "0x9001") as state:
            before = state.shares.borrow_with_default(account, 0)
            self.require(shares <= before, self.E_TOO_MUCH)
            paid = shares * state.coins // state.all_shares
            state.shares.upsert(account, before - shares)
            state.all_shares -= shares
            state.coins -= paid
        self.use(Coin).transfer(APTOS_COIN, self.own_signer(), account, paid)

    @view
    def shares_of(self, owner: address) -> u64:
        return self.borrow(Pool.State, "0x9001").shares.borrow_with_default(owner, 0)

    @view
    def coins(self) -> u64:
        return self.borrow(Pool.State, "0x9001").coins
'''

BANK = '''class Bank(Module, address="0xba4c"):
    """Writes down what it owes, and gives 5 % more than was deposited. Sponsors pay for that, it hopes."""

    class Books(Resource):
        owed: Table[address, u64]
        all_owed: u64
        held: u64

    E_TOO_MUCH = invalid_argument(1, "The bank owes less")
    E_EMPTY = invalid_state(2, "The bank holds less")

    def init_module(self, account: signer) -> None:
        self.move_to(account, Bank.Books(owed=self.new_table(), all_owed=0, held=0))

    @entry
    def sponsor(self, account: signer, amount: u64) -> None:
        with self.borrow_mut(Bank.Books, "0xba4c") as books:
            books.held += amount

    @entry
    def deposit(self, account: signer, amount: u64) -> None:
        with self.borrow_mut(Bank.Books, "0xba4c") as books:
            bonus = amount // 20
            before = books.owed.borrow_with_default(account, 0)
            books.owed.upsert(account, before + amount + bonus)
            books.all_owed += amount + bonus
            books.held += amount

    @entry
    def withdraw(self, account: signer, amount: u64) -> None:
        with self.borrow_mut(Bank.Books, "0xba4c") as books:
            before = books.owed.borrow_with_default(account, 0)
            self.require(amount <= before, self.E_TOO_MUCH)
            self.require(amount <= books.held, self.E_EMPTY)
            books.owed.upsert(account, before - amount)
            books.all_owed -= amount
            books.held -= amount

    @view
    def owed_to(self, owner: address) -> u64:
        return self.borrow(Bank.Books, "0xba4c").owed.borrow_with_default(owner, 0)

    @view
    def owed(self) -> u64:
        return self.borrow(Bank.Books, "0xba4c").all_owed

    @view
    def held(self) -> u64:
        return self.borrow(Bank.Books, "0xba4c").held
'''

DIVIDENDS = '''class Dividends(Module, address="0xd171"):
    """Whoever pays in, pays each member the same amount."""

    class Members(Resource):
        all: vector[address]
        earned: Table[address, u64]

    E_MEMBER = already_exists(1, "The account is a member already")

    def init_module(self, account: signer) -> None:
        self.move_to(account, Dividends.Members(all=[], earned=self.new_table()))

    @entry
    def join(self, account: signer) -> None:
        with self.borrow_mut(Dividends.Members, "0xd171") as members:
            self.require(not members.earned.contains(account), self.E_MEMBER)
            members.all.append(account)
            members.earned.add(account, 0)

    @entry
    def pay(self, account: signer, each: u64) -> None:
        with self.borrow_mut(Dividends.Members, "0xd171") as members:
            for member in self.each(members.all):
                members.earned.upsert(member, members.earned.borrow(member) + each)

    @view
    def earned_by(self, member: address) -> u64:
        return self.borrow(Dividends.Members, "0xd171").earned.borrow_with_default(member, 0)
'''

RAFFLE = '''class Raffle(Module, address="0x4aff1e"):
    """Everybody buys tickets; each ticket has the same chance."""

    class Tickets(Resource):
        owners: vector[address]

    class Bought(Event):
        by: address
        count: u64

    E_NONE = invalid_argument(1, "Buy at least one ticket")
    E_NO_TICKET = not_found(2, "This ticket has not been sold")

    def init_module(self, account: signer) -> None:
        self.move_to(account, Raffle.Tickets(owners=[]))

    @entry
    def buy(self, account: signer, count: u64) -> None:
        pass

    @view
    def tickets_of(self, owner: address) -> u64:
        return 0

    @view
    def owner_of(self, ticket: u64) -> address:
        return "0x0"
'''

SOLD_RAFFLE = (
    RAFFLE.replace(
        """        pass
""",
        """        self.require(count > 0, self.E_NONE)
        with self.borrow_mut(Raffle.Tickets, "0x4aff1e") as tickets:
            for _ in self.each(range(count)):
                tickets.owners.append(account)
        self.emit(Raffle.Bought(by=account, count=count))
""",
    )
    .replace(
        """        return 0
""",
        """        owners = self.borrow(Raffle.Tickets, "0x4aff1e").owners
        return sum([u64(1) for one in self.each(owners) if one == owner])
""",
    )
    .replace(
        """        return "0x0"
""",
        """        owners = self.borrow(Raffle.Tickets, "0x4aff1e").owners
        self.require(ticket < len(owners), self.E_NO_TICKET)
        return owners[ticket]
""",
    )
)
